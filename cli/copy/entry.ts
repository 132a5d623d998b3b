// One thing that is copied, whichever way.
import type { Readable } from 'node:stream'

export interface Entry {
  /** below the target, with slashes; empty for the thing itself */
  readonly path: string
  readonly kind: 'file' | 'folder' | 'link'
  /** permission bits */
  readonly mode: number
  readonly size: number
  /** seconds */
  readonly mtime: number
  readonly target?: string
  /** of a file; to be read to its end before the next entry */
  readonly content?: Readable
}
