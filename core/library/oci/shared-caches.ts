// The caches of builds that everybody's builds take layers from, in the built-in registry.

/** Each has a repository below this. */
export const SHARED_CACHES = 'cache/global'

/** The scope that a key needs to write or delete there, by a build or by the registry. */
export const SHARED_CACHES_SCOPE = 'build:admin'

/** Whether a repository of the built-in registry is among them. */
export function isSharedCache (repository: string): boolean {
  return repository === SHARED_CACHES || repository.startsWith(`${SHARED_CACHES}/`)
}
