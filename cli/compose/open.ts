// The common part of the compose commands: the file, the project, the selected services.
import { readProject } from './project.ts'
import type { Project, ServiceModel } from './model.ts'
import { wrongUsage } from '../failure.ts'
import type { Input } from '../input.ts'
import type { Session } from '../session.ts'

export async function openProject (session: Session, input: Input): Promise<Project> {
  return await readProject({ file: input.text('file'), name: input.text('project'), environment: session.environment, warn: (text) => session.say(`berth: ${text}`) })
}

/** The named services, with those that they depend on; all when none is named. */
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
