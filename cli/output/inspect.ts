// Objects as they are, for the `inspect` commands: one is printed as itself, several as a list.
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { formatted } from './format.ts'

export async function inspectEach (session: Session, names: readonly string[], get: (name: string) => Promise<unknown>): Promise<number> {
  const found: unknown[] = []
  let code: number = EXIT.done
  for (const name of names) {
    try {
      found.push(await get(name))
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      session.complain(error)
      if (code === EXIT.done) code = error.exitCode
    }
  }
  if (found.length > 0) session.line(await formatted(names.length === 1 ? found[0] : found, session.format === 'table' ? 'json' : session.format))
  return code
}
