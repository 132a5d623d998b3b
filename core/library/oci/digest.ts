// The digest by which registries name contents.
import { createHash } from 'node:crypto'

/** `sha256:` and the hash of a content, in hexadecimal. */
export function digestOf (content: string | Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}
