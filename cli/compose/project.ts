// A Compose file, read and checked as a whole.
import { access } from 'node:fs/promises'
import { wrongUsage } from '../failure.ts'
import { inOrder } from './depends-on.ts'
import { expand, interpolated } from './interpolate.ts'
import type { Project, ServiceModel } from './model.ts'
import { projectName } from './names.ts'
import { Place } from './place.ts'
import { serviceOf } from './service.ts'
import { readSource, type Source } from './source.ts'
import { surroundingsOf } from './surroundings.ts'
import { volumesOf } from './volumes.ts'

/** in the order in which they are looked for */
const FILES = ['compose.yaml', 'compose.yml', 'docker-compose.yaml', 'docker-compose.yml'] as const
export const FILE_FIELDS = ['version', 'name', 'services', 'volumes'] as const

export interface ProjectOptions {
  readonly file: string | undefined
  readonly name: string | undefined
  readonly environment: NodeJS.ProcessEnv
  readonly warn: (text: string) => void
}

export async function readProject ({ file: named, name: wanted, environment, warn }: ProjectOptions): Promise<Project> {
  const file = named ?? await findFile()
  const source = await readSource(file)
  const around = await surroundingsOf(file, environment, warn)
  const place = new Place(expanded(source, around.variables))
  const fields = place.fields(FILE_FIELDS)
  const name = projectName(wanted ?? fields.get('name')?.text(), file)
  const volumes = volumesOf(fields.get('volumes'), name)
  const written = fields.get('services')?.entries() ?? []
  if (written.length === 0) throw place.refusal('there are no services')
  const services = new Map<string, { place: Place, model: ServiceModel }>()
  for (const [service, entry] of written) {
    services.set(service, { place: entry, model: await serviceOf(service, entry, { project: name, services: written.map(([each]) => each), volumes }, around) })
  }
  checkTogether(services)
  return { name, file, services: inOrder(services), volumes: [...volumes.values()] }
}

function expanded (source: Source, variables: Parameters<typeof interpolated>[1]): Source {
  return { ...source, value: interpolated(source.value, variables, (path, fault) => new Place(source, undefined, path).refusal(fault)) }
}

function checkTogether (services: ReadonlyMap<string, { readonly place: Place, readonly model: ServiceModel }>): void {
  const instances = new Map<string, string>()
  for (const [service, { place, model }] of services) {
    const other = instances.get(model.instance)
    if (other !== undefined) throw place.refusal(`its instance would have the name of that of ${other}: ${model.instance}`)
    instances.set(model.instance, service)
    if (model.instance.length > 63) throw place.refusal(`its instance would be ${model.instance}, and names have at most 63 characters`)
    for (const { service: needed, condition } of model.dependsOn) {
      if (condition === 'service_healthy' && services.get(needed)?.model.hasHealthCheck === false) throw place.refusal(`depends_on.${needed}: it has no healthcheck, so it would never be healthy`)
    }
  }
}

/** `name` of a file, if it has one. */
export async function nameIn (file: string, environment: NodeJS.ProcessEnv): Promise<string | undefined> {
  const source = await readSource(file)
  const { variables } = await surroundingsOf(file, environment, () => undefined)
  const name = new Place(source).entries().find(([key]) => key === 'name')?.[1]
  return name === undefined ? undefined : expand(name.text(), variables)
}

/** The Compose file of the folder that this process is in. */
export async function findFile (): Promise<string> {
  for (const file of FILES) {
    if (await access(file).then(() => true, () => false)) return file
  }
  throw wrongUsage(`there is no ${FILES[0]} here`, 'name one with -f FILE')
}
