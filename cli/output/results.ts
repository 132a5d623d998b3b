// Commands with several arguments: when one fails, the others are still done.
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'

/** Does the same for each name, one after the other, and prints the name when it is done. The exit code is that of the first failure. */
export async function forEach (session: Session, names: readonly string[], act: (name: string) => Promise<unknown>): Promise<number> {
  return await printEach(session, names, async (name) => ({ name, answer: await act(name) }), ({ name }) => name, ({ answer }) => answer)
}

/**
 * The same for what has a line of its own. JSON and YAML of several are one list at the end, as for `inspect`; the other formats print each as it is done.
 * @param valueOf the value for programs; undefined prints nothing
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

/** Reports the failure of one of several items, so that the others are still done; returns its exit code. After Ctrl-C it throws instead: then the failure is a consequence of Ctrl-C. */
export function complain (session: Session, error: unknown): number {
  if (!(error instanceof Failure) || session.interrupted.aborted) throw error
  session.complain(error)
  return error.exitCode
}
