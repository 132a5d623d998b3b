// Makes, lends and removes the files of volumes.
//
// A disk is a file in a folder that only the server can enter. An instance that has the volume gets a second name of this file (a hard link) in a folder that only the user of its VM can
// enter. So the permissions of the file itself need not tell users apart: a reader's file may be readable for everybody, since nobody else can reach it.
import { chmod, chown, link, lstat, mkdir, readdir, rename, rm, rmdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { removeTree, renameDurably, syncFile, syncFolder } from '../../core/fs/durable.ts'
import { makeExt4, type Ext4Content } from '../../core/library/ext4.ts'
import type { VolumeUser } from '../instances/volumes/contract.ts'
import { VolumeDisplaced } from './errors.ts'
import { DISK_SUFFIX, MAKING_SUFFIX, type VolumePaths } from './paths.ts'

const BLOCK_BYTES = 512

export class VolumeFiles {
  readonly paths: VolumePaths
  readonly #commands: HostCommands

  constructor (paths: VolumePaths, commands: HostCommands) {
    this.paths = paths
    this.#commands = commands
  }

  /** Makes the folders, and removes what an earlier server was still unpacking. */
  async prepare (): Promise<void> {
    const { folder, disks, uses, unpacking } = this.paths
    await makeFolder(folder, 0o711)
    await makeFolder(uses, 0o711)
    await makeFolder(disks, 0o700)
    await removeTree(unpacking)
    await makeFolder(unpacking, 0o700)
  }

  /** Makes an empty disk, or one with the content of a folder. When this rejects, there is no disk. */
  async make (id: string, bytes: number, content?: Ext4Content, signal?: AbortSignal): Promise<void> {
    const path = this.disk(id)
    const making = `${path}${MAKING_SUFFIX}`
    await removeTree(making)
    try {
      // An hour is enough for content that was unpacked onto a slow disk.
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

  /** The folder that its archive is unpacked into. */
  unpacking (id: string): string { return join(this.paths.unpacking, id) }

  /** The path of the disk for an instance's VM. */
  use (instanceId: string, id: string): string { return join(this.paths.uses, instanceId, `${id}${DISK_SUFFIX}`) }

  /** Gives an instance's VM its own name of a disk. `grant` decides what its user may do with the file. @throws volume_displaced when that is the name of another file */
  async lend (instanceId: string, id: string, user: VolumeUser | undefined): Promise<string> {
    const path = this.use(instanceId, id)
    // The folder is not the user's own: a VMM that a guest has taken over could put another file there.
    await makeFolder(dirname(path), 0o710)
    if (user !== undefined) await chown(dirname(path), 0, user.gid)
    try {
      await link(this.disk(id), path)
    } catch (error) {
      if (!hasCode(error, 'EEXIST')) throw error
      if (await this.#isOther(instanceId, id)) throw VolumeDisplaced(id, instanceId)
    }
    return path
  }

  /** Lets the user write the disk; or makes the disk the server's, and readable for others. */
  async grant (id: string, { readonly, user }: { readonly readonly: boolean, readonly user: VolumeUser | undefined }): Promise<void> {
    const path = this.disk(id)
    const owner = readonly ? undefined : user
    if (process.getuid?.() === 0) await chown(path, owner?.uid ?? 0, owner?.gid ?? 0)
    await chmod(path, readonly ? 0o444 : 0o600)
  }

  /** Removes the name, and the folder with its last name. Another file of that name may have what a VM wrote, and is kept beside the disk. */
  async takeBack (instanceId: string, id: string): Promise<void> {
    const path = this.use(instanceId, id)
    if (await this.#isOther(instanceId, id)) await renameDurably(path, `${this.disk(id)}.of-${instanceId}`)
    else await rm(path, { force: true })
    try {
      await rmdir(dirname(path))
    } catch (error) {
      if (!hasCode(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) throw error
    }
  }

  /** Whether the instance's name is that of a file of its own: earlier versions restored a backup so. */
  async #isOther (instanceId: string, id: string): Promise<boolean> {
    const [disk, use] = await Promise.all([inodeOf(this.disk(id)), inodeOf(this.use(instanceId, id))])
    return disk !== undefined && use !== undefined && disk !== use
  }

  /** The ids of the volumes that instances have a name of, by instance. */
  async lent (): Promise<Map<string, string[]>> {
    const found = new Map<string, string[]>()
    for (const instanceId of await readdir(this.paths.uses)) {
      found.set(instanceId, (await readdir(join(this.paths.uses, instanceId))).flatMap((name) => name.endsWith(DISK_SUFFIX) ? [name.slice(0, -DISK_SUFFIX.length)] : []))
    }
    return found
  }

  /** Names among the disks that belong to none of these volumes. */
  async strangers (ids: ReadonlySet<string>): Promise<string[]> {
    return (await readdir(this.paths.disks)).filter((name) => !name.endsWith(DISK_SUFFIX) || !ids.has(name.slice(0, -DISK_SUFFIX.length)))
  }

  /** The space that a disk takes; 0 when it is gone. */
  async allocatedBytes (id: string): Promise<number> {
    try {
      return (await stat(this.disk(id))).blocks * BLOCK_BYTES
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return 0
      throw error
    }
  }
}

async function inodeOf (path: string): Promise<bigint | undefined> {
  try {
    return (await lstat(path, { bigint: true })).ino
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  }
}

async function makeFolder (path: string, mode: number): Promise<void> {
  await mkdir(path, { recursive: true, mode })
  await chmod(path, mode)
}
