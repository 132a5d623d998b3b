// Several arguments, each with a result of its own: one that fails does not keep the others from theirs.
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'

/** Does the same to each, one after the other, and prints its name when it is done. The exit code is that of the first that failed. */
export async function forEach (session: Session, names: readonly string[], act: (name: string) => Promise<unknown>): Promise<number> {
  let code: number = EXIT.done
  for (const name of names) {
    try {
      const answer = await act(name)
      if (session.format === 'table') session.line(name)
      else if (answer !== undefined) await session.print(answer)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      session.complain(error)
      if (code === EXIT.done) code = error.exitCode
    }
  }
  return code
}
