// Paths of entries, as instances and archives write them.

/** The path without empty parts and `.`: no slash at either end, and empty for the place itself. */
export function shortest (path: string): string {
  return path.split('/').filter((part) => part !== '' && part !== '.').join('/')
}
