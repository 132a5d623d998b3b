// The name of a project, for commands that need nothing else of its file: a variable that only a service needs may be unset.
import { findFile, nameIn } from './project.ts'
import { projectName } from './names.ts'
import type { Input } from '../input.ts'
import type { Session } from '../session.ts'

export async function nameOf (session: Session, input: Input): Promise<string> {
  const wanted = input.text('project')
  if (wanted !== undefined) return projectName(wanted, '')
  const file = input.text('file') ?? await findFile()
  return projectName(await nameIn(file, session.environment), file)
}
