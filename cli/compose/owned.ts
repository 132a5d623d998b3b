// Finds the server's resources that belong to a project: by their tags only.
import type { Api } from '../api/client.ts'
import type { Instance, Volume } from '../views.ts'
import { OWN_PREFIX } from './maps.ts'

const tag = (name: string): string => `${OWN_PREFIX}${name}`

export interface OwnedInstance { readonly service: string, readonly hash: string, readonly instance: Instance }

export function instanceTags (project: string, { service, instance, hash }: { readonly service: string, readonly instance: string, readonly hash: string }): Record<string, string> {
  return { [tag('project')]: project, [tag('service')]: service, [tag('instance')]: instance, [tag('hash')]: hash }
}

/** A fork has the tags of its source, but another name: it belongs to whoever made it, not to the project. */
export async function ownedInstances (api: Api, project: string): Promise<OwnedInstance[]> {
  const found = await api.list<Instance>('/instances', { tags: { [tag('project')]: project } })
  return found.filter(({ name, tags }) => tags?.[tag('instance')] === name)
    .map((instance) => ({ instance, service: instance.tags?.[tag('service')] ?? '', hash: instance.tags?.[tag('hash')] ?? '' }))
}

export function volumeTags (project: string, volume: string): Record<string, string> {
  return { [tag('project')]: project, [tag('volume')]: volume }
}

export async function ownedVolumes (api: Api, project: string): Promise<Volume[]> {
  return (await api.list<Volume>('/volumes', { tags: { [tag('project')]: project } })).filter(({ tags }) => tags?.[tag('volume')] !== undefined)
}
