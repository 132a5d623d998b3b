// The repositories that a limited key may write images to.
import { InvalidRequest } from '../errors/common.ts'

const MAX_LENGTH = 512
const HOST = /^[a-z0-9[\]][a-z0-9.:[\]-]*$/
const COMPONENT = /^[a-z0-9]+(?:[._-]+[a-z0-9]+)*$/

/** An entry of a key's limits: `host/path` for one repository, `host/path/*` for those below it. */
const REPOSITORY_RULE = 'must be like registry.example.com/team/app or registry.example.com/team/*; localhost is the host of the built-in registry'

/** Refuses an empty list and invalid entries. */
export function checkRepositories (repositories: readonly string[] | undefined): void {
  if (repositories === undefined) return
  if (repositories.length === 0) throw InvalidRequest('repositories: at least one is needed; leave the field out for a key without this limit')
  repositories.forEach((repository, index) => {
    if (!isPattern(repository)) throw InvalidRequest(`repositories[${index}]: ${REPOSITORY_RULE}`)
  })
}

/** Whether a list allows a repository, or everything that an entry of another list allows: `a/b/*` begins with `a/`, so `a/*` allows it. No list allows everything. */
export function holdsRepository (repositories: readonly string[] | undefined, repository: string): boolean {
  return repositories === undefined || repositories.some((pattern) => pattern.endsWith('/*') ? repository.startsWith(pattern.slice(0, -1)) : repository === pattern)
}

function isPattern (text: string): boolean {
  if (text.length > MAX_LENGTH) return false
  const [host = '', ...path] = text.split('/')
  if (!HOST.test(host) || !(host === 'localhost' || /[.:]/.test(host))) return false
  const names = path.at(-1) === '*' ? path.slice(0, -1) : path
  return path.length > 0 && names.every((name) => COMPONENT.test(name))
}
