// The path that a rule is compared with. Programs read encoded and doubled parts of a path differently, so such a path could bypass a rule.

/** As nginx's map `berth_first` does it: no part is encoded, empty, or begins with a dot. */
const PLAIN = /^(?:\/|(?:\/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+\/?)$/

export interface AskedPath {
  /** the path for comparison with rules' paths */
  readonly path: string
  /** whether every program reads the path in the same way */
  readonly plain: boolean
  /** whether all of it, as the client has sent it, may stand in the path of a URI. nginx takes more, and programs end a path at some of it: at `#`, or at what they take for a space (Python's http.server: 0x85 and 0xa0). */
  readonly valid: boolean
}

const INVALID = /[^\x21-\x7e]|#/

/** @param uri as the client has sent it */
export function askedPath (uri: string): AskedPath {
  const end = uri.indexOf('?')
  const path = end < 0 ? uri : uri.slice(0, end)
  return PLAIN.test(path) ? { path, plain: true, valid: true } : { path: decoded(path), plain: false, valid: !INVALID.test(path) }
}

/** Whether a program could read it as another path: it has dot segments, doubled or encoded slashes, backslashes, parameters of a segment, a fragment, or invalid encoding. */
export function isAmbiguous ({ path, plain, valid }: AskedPath): boolean {
  if (plain) return false
  return !valid || !path.startsWith('/') || path.includes('//') || path.includes('%') || path.includes('\\') || path.includes(';') || hasControl(path) || path.split('/').some((segment) => segment === '.' || segment === '..')
}

function decoded (path: string): string {
  // Some programs decode an encoded slash, others do not.
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
