// The output of the `inspect` commands: one object is printed by itself, several as a list.
import { EXIT } from '../exit-codes.ts'
import type { Session } from '../session.ts'
import { formatted } from './format.ts'
import { complain } from './results.ts'

export async function inspectEach (session: Session, names: readonly string[], get: (name: string) => Promise<unknown>): Promise<number> {
  const found: unknown[] = []
  let code: number = EXIT.done
  for (const name of names) {
    try {
      found.push(await get(name))
    } catch (error) {
      const failed = complain(session, error)
      if (code === EXIT.done) code = failed
    }
  }
  if (found.length > 0) session.line(await formatted(names.length === 1 ? found[0] : found, session.format === 'table' ? 'json' : session.format))
  return code
}
