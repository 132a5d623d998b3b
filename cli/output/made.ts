// Prints the answer to a create: its id for people and scripts, all of it for programs.
import type { Session } from '../session.ts'

export async function printMade (session: Session, made: { readonly id: string }): Promise<number> {
  if (session.format === 'table') session.line(made.id)
  else await session.print(made)
  return 0
}
