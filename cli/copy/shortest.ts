// Paths of entries, as instances and archives write them.

/** Whether it has a part `..`, and may lead out of what it is below. */
export function goesUp (path: string): boolean {
  return path.split('/').includes('..')
}

/** The path without empty parts and `.`: no slash at either end, and empty for the place itself. */
export function shortest (path: string): string {
  return path.split('/').filter((part) => part !== '' && part !== '.').join('/')
}
