// How much an archive may hold, and how large a volume its content needs.
import { ArchiveTooLarge } from '../errors.ts'
import { GIB } from '../record.ts'

const BLOCK_BYTES = 4096
const INODE_BYTES = 256
const GROUP_BYTES = 128 * 2 ** 20
/** overhead of each group: two bitmaps, and its share of descriptors and their copies */
const GROUP_OVERHEAD_BYTES = 4 * BLOCK_BYTES
const RESERVE_BYTES = 8 * 2 ** 20
/** mke2fs has one inode for each of these */
const BYTES_PER_INODE = 16_384
const SPARE_INODES = 1024

/** Counts the content of an archive as a file system would. */
export class Budget {
  readonly #limitGb: number
  readonly #maxEntries: number
  #bytes = 0
  #entries = 0

  constructor (limitGb: number, maxEntries: number) {
    this.#limitGb = limitGb
    this.#maxEntries = maxEntries
  }

  get entries (): number { return this.#entries }

  /** @throws archive_too_large when there is one entry too many, or its content would not fit: before any of it is written */
  charge (contentBytes: number): void {
    this.#entries++
    if (this.#entries > this.#maxEntries) throw ArchiveTooLarge(`it has more than ${this.#maxEntries} entries`)
    this.#bytes += Math.ceil(contentBytes / BLOCK_BYTES) * BLOCK_BYTES + INODE_BYTES
    if (this.#bytes > this.#limitGb * GIB) throw ArchiveTooLarge(`its content does not fit into ${this.#limitGb} GB`)
  }

  /** The size of the smallest volume for what was charged, and its inodes. @throws archive_too_large when that size is larger than asked for */
  fit (): { readonly sizeGb: number, readonly inodes: number } {
    for (const sizeGb of this.#sizes()) {
      const inodes = Math.max(Math.ceil(sizeGb * GIB / BYTES_PER_INODE), Math.ceil(this.#entries * 1.1) + SPARE_INODES)
      if (this.#bytes + overheadBytes(sizeGb, inodes) <= sizeGb * GIB) return { sizeGb, inodes }
    }
    throw ArchiveTooLarge(`its content, with what a file system needs for itself, does not fit into ${this.#limitGb} GB`)
  }

  /** All sizes in whole GB up to the limit, and the limit itself. */
  * #sizes (): Generator<number, void, void> {
    for (let sizeGb = Math.max(1, Math.ceil(this.#bytes / GIB)); sizeGb < this.#limitGb; sizeGb++) yield sizeGb
    yield this.#limitGb
  }
}

function overheadBytes (sizeGb: number, inodes: number): number {
  const groups = Math.ceil(sizeGb * GIB / GROUP_BYTES)
  return journalBytes(sizeGb) + inodes * INODE_BYTES + groups * GROUP_OVERHEAD_BYTES + RESERVE_BYTES + sizeGb * GIB / 200
}

/** The size of the journal that mke2fs makes. */
function journalBytes (sizeGb: number): number {
  if (sizeGb < 2) return 32 * 2 ** 20
  if (sizeGb < 16) return 64 * 2 ** 20
  if (sizeGb < 32) return 128 * 2 ** 20
  return sizeGb < 64 ? 256 * 2 ** 20 : 1024 * 2 ** 20
}
