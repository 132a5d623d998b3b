// Makes, hands out and removes the files of volumes.
//
// A disk is a file in a folder that only the server can enter. An instance that has it gets a second name of it (a hard link) in a folder that only the user of its VM can
// enter. So no permission of the file itself has to tell users apart: a reader may read what everybody may read, and nobody else gets as far as the file.
import { chmod, chown, link, mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { removeTree, syncFile, syncFolder } from '../../core/fs/durable.ts'
import { makeExt4, type Ext4Content } from '../../core/library/ext4.ts'
import type { VolumeUser } from '../instances/volumes/contract.ts'
import { DISK_SUFFIX, MAKING_SUFFIX, type VolumePaths } from './paths.ts'

const BLOCK_BYTES = 512

export class VolumeFiles {
  readonly paths: VolumePaths
  readonly #commands: HostCommands

  constructor (paths: VolumePaths, commands: HostCommands) {
    this.paths = paths
    this.#commands = commands
  }

  /** The folders, and nothing that an earlier server was still unpacking. */
  async prepare (): Promise<void> {
    const { folder, disks, uses, unpacking } = this.paths
    await makeFolder(folder, 0o711)
    await makeFolder(uses, 0o711)
    await makeFolder(disks, 0o700)
    await removeTree(unpacking)
    await makeFolder(unpacking, 0o700)
  }

  /** Makes an empty disk, or one with what is in a folder. It is not there when this rejects. */
  async make (id: string, bytes: number, content?: Ext4Content, signal?: AbortSignal): Promise<void> {
    const path = this.disk(id)
    const making = `${path}${MAKING_SUFFIX}`
    await removeTree(making)
    try {
      // An hour is for what was unpacked onto a slow disk.
      await makeExt4(this.#commands, making, bytes, { ...(content === undefined ? {} : { content, timeoutMs: 3_600_000 }), ...(signal === undefined ? {} : { signal }) })
      await syncFile(making)
      await rename(making, path)
    } catch (error) {
      await removeTree(making)
      throw error
    }
    await syncFolder(dirname(path))
  }

  async remove (id: string): Promise<void> {
    const path = this.disk(id)
    await removeTree(`${path}${MAKING_SUFFIX}`)
    await removeTree(path)
    await removeTree(this.unpacking(id))
    await syncFolder(this.paths.disks)
  }

  disk (id: string): string { return join(this.paths.disks, `${id}${DISK_SUFFIX}`) }

  /** Where its archive is unpacked. */
  unpacking (id: string): string { return join(this.paths.unpacking, id) }

  /** The name of the disk for an instance's VM. */
  use (instanceId: string, id: string): string { return join(this.paths.uses, instanceId, `${id}${DISK_SUFFIX}`) }

  /** Gives an instance's VM its own name of a disk. What that user may do with the file is for `grant` to say. */
  async lend (instanceId: string, id: string, user: VolumeUser | undefined): Promise<string> {
    const path = this.use(instanceId, id)
    // Not the user's own: a VMM that a guest has taken over could put something else there.
    await makeFolder(dirname(path), 0o710)
    if (user !== undefined) await chown(dirname(path), 0, user.gid)
    try {
      await link(this.disk(id), path)
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
    }
    return path
  }

  /** Makes the disk the user's to write, or one that the server has and others may read. */
  async grant (id: string, readonly: boolean, user: VolumeUser | undefined): Promise<void> {
    const path = this.disk(id)
    const owner = readonly ? undefined : user
    if (process.getuid?.() === 0) await chown(path, owner?.uid ?? 0, owner?.gid ?? 0)
    await chmod(path, readonly ? 0o444 : 0o600)
  }

  /** Takes the name back, and the folder with the last one. */
  async takeBack (instanceId: string, id: string): Promise<void> {
    const path = this.use(instanceId, id)
    await rm(path, { force: true })
    try {
      await rmdir(dirname(path))
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error
    }
  }

  /** The volumes that an instance has a name of, by instance. */
  async lent (): Promise<Map<string, string[]>> {
    const found = new Map<string, string[]>()
    for (const instanceId of await readdir(this.paths.uses)) {
      found.set(instanceId, (await readdir(join(this.paths.uses, instanceId))).flatMap((name) => name.endsWith(DISK_SUFFIX) ? [name.slice(0, -DISK_SUFFIX.length)] : []))
    }
    return found
  }

  /** Names among the disks that are none of these volumes. */
  async strangers (ids: ReadonlySet<string>): Promise<string[]> {
    return (await readdir(this.paths.disks)).filter((name) => !name.endsWith(DISK_SUFFIX) || !ids.has(name.slice(0, -DISK_SUFFIX.length)))
  }

  /** What a disk takes; 0 when it is gone. */
  async allocatedBytes (id: string): Promise<number> {
    try {
      return (await stat(this.disk(id))).blocks * BLOCK_BYTES
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return 0
      throw error
    }
  }
}

async function makeFolder (path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true, mode })
  await chmod(path, mode)
}
