// Parses the two arguments of `cp`.
import { wrongUsage } from '../failure.ts'

export type Place =
  | { readonly kind: 'local', readonly path: string }
  | { readonly kind: 'stream' }
  | { readonly kind: 'instance', readonly instance: string, readonly path: string }

/** `INSTANCE:PATH`, `-`, or a local path. A local path with a colon is written `./a:b`. */
export function placeOf (text: string): Place {
  if (text === '-') return { kind: 'stream' }
  const at = text.indexOf(':')
  const slash = text.indexOf('/')
  if (at < 1 || (slash >= 0 && slash < at)) return { kind: 'local', path: text }
  const path = text.slice(at + 1)
  if (path === '') throw wrongUsage(`${text}: a path in the instance is needed`, `${text}/ is its top folder`)
  return { kind: 'instance', instance: text.slice(0, at), path }
}
