// The files of a snapshot: a folder of its own that only the server can enter, since guests' memory is in it.
import { mkdir, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { compressedName, type CompressionAlgorithm } from '../../core/library/compressed-memory.ts'
import { removeTree, renameDurably, syncFile, syncFolder } from '../../core/fs/durable.ts'
import { syncMemoryImage } from '../../core/library/memory-image.ts'
import { namesIn } from '../../core/fs/names-in.ts'
import type { CopyFiles, CopyKind } from '../instances/contract.ts'
import type { SnapshotRecord } from './record.ts'

const RAW = 'memory'
const BLOCK_BYTES = 512

/** Where the snapshots of a data folder are. */
export class SnapshotFiles {
  readonly folder: string

  constructor (dataDir: string) {
    this.folder = join(dataDir, 'snapshots')
  }

  async prepare (): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
  }

  /** Names in the folder that are no snapshot's id. */
  async strangers (ids: ReadonlySet<string>): Promise<string[]> {
    return (await readdir(this.folder)).filter((name) => !ids.has(name))
  }

  /** The paths of the files while they are made: with raw memory. */
  raw (id: string): CopyFiles {
    const folder = join(this.folder, id)
    return { overlay: join(folder, 'overlay.ext4'), volumes: join(folder, 'volumes'), state: join(folder, 'state'), memory: { path: join(folder, RAW) } }
  }

  /** The files that count for a whole snapshot. */
  of (record: Pick<SnapshotRecord, 'id' | 'compression' | 'compressionState'>): CopyFiles {
    const raw = this.raw(record.id)
    if (record.compressionState !== 'compressed' || record.compression === null) return raw
    const { algorithm } = record.compression
    return { ...raw, memory: { path: this.#compressed(record.id, algorithm), algorithm } }
  }

  /** The path where compressed memory is written before it is complete; there is nothing at that path. */
  async beginCompression (id: string, algorithm: CompressionAlgorithm): Promise<string> {
    const path = this.#compressing(id, algorithm)
    await removeTree(path)
    return path
  }

  async dropCompression (id: string, algorithm: CompressionAlgorithm): Promise<void> {
    await removeTree(this.#compressing(id, algorithm))
  }

  /** Gives compressed memory, which is synced, its final name. */
  async finishCompression (id: string, algorithm: CompressionAlgorithm): Promise<void> {
    await renameDurably(this.#compressing(id, algorithm), this.#compressed(id, algorithm))
  }

  async removeRawMemory (id: string): Promise<void> {
    await removeTree(this.raw(id).memory.path)
  }

  async make (id: string): Promise<void> {
    await mkdir(join(this.folder, id), { mode: 0o700 })
  }

  /** Syncs all files of a new snapshot, and their names. */
  async sync (id: string, kind: CopyKind): Promise<void> {
    const { overlay, volumes, state, memory } = this.raw(id)
    const others = await pathsIn(volumes)
    for (const path of others) await syncFile(path)
    if (others.length > 0) await syncFolder(volumes)
    await syncMemoryImage(kind === 'Standby' ? [overlay, state, memory.path] : [overlay])
    await syncFolder(this.folder)
  }

  /** The space that a new snapshot takes on disk. */
  async measure (id: string, kind: CopyKind): Promise<{ diskBytes: number, memoryBytes: number | null }> {
    const { overlay, volumes, state, memory } = this.raw(id)
    const disks = await Promise.all([overlay, ...await pathsIn(volumes)].map(allocatedBytes))
    const diskBytes = disks.reduce((sum, bytes) => sum + bytes, 0)
    if (kind === 'Stopped') return { diskBytes, memoryBytes: null }
    return { diskBytes: diskBytes + await allocatedBytes(state), memoryBytes: await allocatedBytes(memory.path) }
  }

  /** Removes all of a snapshot. Not an error when there is nothing. */
  async remove (id: string): Promise<void> {
    await removeTree(join(this.folder, id))
    await syncFolder(this.folder)
  }

  /** Removes the leftover of a compression that was cut off, before or after its end. Returns the names of files that a whole snapshot has and this one lacks. */
  async tidy (record: SnapshotRecord): Promise<string[]> {
    const folder = join(this.folder, record.id)
    const { overlay, state, memory } = this.of(record)
    const wanted = record.kind === 'Standby' ? [overlay, state, memory.path] : [overlay]
    const there = (await namesIn(folder)).map((name) => join(folder, name))
    const missing = wanted.filter((path) => !there.includes(path))
    // Never removes the only memory that is left.
    if (missing.length === 0) {
      for (const path of there) if (path.startsWith(join(folder, RAW)) && !wanted.includes(path)) await removeTree(path)
    }
    return missing
  }

  #compressed (id: string, algorithm: CompressionAlgorithm): string {
    return join(this.folder, id, compressedName(algorithm))
  }

  #compressing (id: string, algorithm: CompressionAlgorithm): string {
    return `${this.#compressed(id, algorithm)}.making`
  }
}

async function pathsIn (folder: string): Promise<string[]> {
  return (await namesIn(folder)).map((name) => join(folder, name))
}

/** The space that a sparse file takes on disk. */
async function allocatedBytes (path: string): Promise<number> {
  return (await stat(path)).blocks * BLOCK_BYTES
}
