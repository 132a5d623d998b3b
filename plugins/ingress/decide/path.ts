// The path that a rule is judged by. Programs read encoded and doubled parts of a path in several ways, so that one could lead around a rule.

/** As nginx's map `berth_first` does it: no part is encoded, empty, or begins with a dot. */
const PLAIN = /^(?:\/|(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+\/?)$/

export interface AskedPath {
  /** what rules' paths are compared with */
  readonly path: string
  /** whether every program reads it so */
  readonly plain: boolean
}

/** @param uri as the client has sent it */
export function askedPath (uri: string): AskedPath {
  const end = uri.indexOf('?')
  const path = end < 0 ? uri : uri.slice(0, end)
  return PLAIN.test(path) ? { path, plain: true } : { path: decoded(path), plain: false }
}

/** Whether it could mean another path than it says: with dot segments, doubled or encoded slashes, backslashes, parameters of a segment, or what cannot be decoded. */
export function isAmbiguous ({ path, plain }: AskedPath): boolean {
  if (plain) return false
  return !path.startsWith('/') || path.includes('//') || path.includes('%') || path.includes('\\') || path.includes(';') || hasControl(path) || path.split('/').some((segment) => segment === '.' || segment === '..')
}

function decoded (path: string): string {
  // An encoded slash is none for one program and one for the next.
  if (path.toLowerCase().includes('%2f')) return path
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}

function hasControl (text: string): boolean {
  return [...text].some((character) => character < ' ' || character === '\u007f')
}
