// What the commands of compose have in common: the file, the project, the services that are meant.
import { readProject } from './project.ts'
import type { Project, ServiceModel } from './model.ts'
import { wrongUsage } from '../failure.ts'
import type { Input } from '../input.ts'
import type { Session } from '../session.ts'

export async function openProject (session: Session, input: Input): Promise<Project> {
  return await readProject({ file: input.text('file'), name: input.text('project'), environment: session.environment, warn: (text) => session.say(`berth: ${text}`) })
}

/** Those that are named, with what they depend on; all when none is. */
export function meantServices ({ services }: Project, named: readonly string[]): ServiceModel[] {
  if (named.length === 0) return [...services]
  const meant = new Set<string>()
  const add = (name: string): void => {
    const found = services.find(({ service }) => service === name)
    if (found === undefined) throw wrongUsage(`there is no service ${name} in the file`)
    if (meant.has(name)) return
    meant.add(name)
    for (const { service } of found.dependsOn) add(service)
  }
  for (const name of named) add(name)
  return services.filter(({ service }) => meant.has(service))
}
