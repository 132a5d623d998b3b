// Several arguments, each with a result of its own: one that fails does not keep the others from theirs.
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'

/** Does the same to each, one after the other, and prints its name when it is done. The exit code is that of the first that failed. */
export async function forEach (session: Session, names: readonly string[], act: (name: string) => Promise<unknown>): Promise<number> {
  return await printEach(session, names, async (name) => ({ name, answer: await act(name) }), ({ name }) => name, ({ answer }) => answer)
}

/**
 * The same for what has a line of its own. JSON and YAML of several are one list at the end, as for `inspect`; the other formats print each as it is done.
 * @param valueOf what programs are given; nothing for undefined
 */
export async function printEach<T, R> (session: Session, items: readonly T[], act: (item: T) => Promise<R>, lineOf: (result: R) => string, valueOf: (result: R) => unknown = (result) => result): Promise<number> {
  const { format } = session
  const isGathered = (format === 'json' || format === 'yaml') && items.length > 1
  const values: unknown[] = []
  let code: number = EXIT.done
  for (const item of items) {
    try {
      const result = await act(item)
      const value = valueOf(result)
      if (format === 'table') session.line(lineOf(result))
      else if (value !== undefined && isGathered) values.push(value)
      else if (value !== undefined) await session.print(value)
    } catch (error) {
      const failed = complain(session, error)
      if (code === EXIT.done) code = failed
    }
  }
  if (values.length > 0) await session.print(values)
  return code
}

/** Tells why one of several failed, so that the others have their turn; its exit code. After Ctrl-C none of them has: what failed then did so by it. */
export function complain (session: Session, error: unknown): number {
  if (!(error instanceof Failure) || session.interrupted.aborted) throw error
  session.complain(error)
  return error.exitCode
}
