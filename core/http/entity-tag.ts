// The version of an answer, for `ETag`, `If-None-Match` and `If-Match`.
import { hash } from 'node:crypto'

/** Weak, since a compressed answer has the same. */
export function entityTag (body: string | Uint8Array): string {
  return `W/"${contentHash(body)}"`
}

/** What makes up a tag: its quotes and the mark of a weak one are added by whoever writes the header. */
export function contentHash (body: string | Uint8Array): string {
  return hash('sha1', body, 'base64')
}
