// One file, folder or link that is copied, in either direction; or what cannot be, a further name of a file in an archive, a device, pipe or socket.
import type { Readable } from 'node:stream'

export interface Entry {
  /** below the target, with slashes; empty for the source itself */
  readonly path: string
  readonly kind: 'file' | 'folder' | 'link' | 'hard link' | 'special file'
  /** permission bits */
  readonly mode: number
  readonly size: number
  /** seconds */
  readonly mtime: number
  readonly target?: string
  /** content of a file; it must be read to its end before the next entry */
  readonly content?: Readable
}
