// What a grant allows.
import type { RegistryGrant } from './contract.ts'
import { isRepository, READ, WRITE, type RegistryRequest } from './requests.ts'

/** Nobody deletes, and nobody sees the list of all repositories. */
export function mayUse (grant: RegistryGrant, { repository, scopes }: RegistryRequest): boolean {
  if (repository === undefined) return false
  if (scopes.includes(READ)) return mayRead(grant, repository)
  return scopes.includes(WRITE) && grant.write.includes(repository)
}

function mayRead ({ read, write }: RegistryGrant, repository: string): boolean {
  return read === 'all' || read.includes(repository) || write.includes(repository)
}

/**
 * The URL of an upload's start, rebuilt: with the request to mount a blob of another repository only if that may be read, and without other parameters. Without the mount the client
 * uploads the blob, as it must with a registry that cannot mount at all.
 */
export function withoutForeignMount (grant: RegistryGrant, url: string): string {
  const [path = '', query = ''] = url.split('?', 2)
  const parameters = new URLSearchParams(query)
  const digest = parameters.get('mount')
  const from = parameters.get('from')
  if (digest === null || from === null || !isRepository(from) || !mayRead(grant, from)) return path
  return `${path}?${new URLSearchParams({ mount: digest, from }).toString()}`
}
