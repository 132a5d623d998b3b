// Makes a volume: first a row, which claims the id, then the disk, then the change of the row that says it is whole. Killed between any two steps, the row says `creating`, and the next
// start of the server removes all of it.
import { chmod, mkdir } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { HostCommands, Logger } from '../../core/contracts/services.ts'
import type { DiskSpace } from '../../core/fs/disk-space.ts'
import { isDiskFull } from '../../core/fs/disk-full.ts'
import { removeTree } from '../../core/fs/durable.ts'
import { withSignals } from '../../core/jobs/deadline.ts'
import { nowOrLater } from '../../core/jobs/now-or-later.ts'
import { createUndo, type Undo } from '../../core/undo.ts'
import type { ResourceClaim } from '../instances/room/contract.ts'
import { unpack, type UnpackLimits } from './archive/unpack.ts'
import { DiskFull, VolumeExists, VolumeNameTaken } from './errors.ts'
import { GIB, type VolumeRecord } from './record.ts'
import { remove, removeLater, type RemoveContext } from './remove.ts'

export interface MakeContext extends RemoveContext {
  readonly log: Logger
  readonly commands: HostCommands
  readonly disk: DiskSpace
}

/** Makes the disk and resolves with its size in GB. */
type Fill = (undo: Undo) => Promise<number>

export async function createEmpty (context: MakeContext, record: VolumeRecord): Promise<VolumeRecord> {
  return await make(context, record, async () => {
    await context.files.make(record.id, record.sizeGb * GIB)
    return record.sizeGb
  })
}

export async function createFromArchive (context: MakeContext, record: VolumeRecord, archive: Readable, limits: UnpackLimits, signal: AbortSignal): Promise<VolumeRecord> {
  const { disk, files } = context
  signal.throwIfAborted()
  // The server is ending.
  signal.addEventListener('abort', () => { archive.destroy() }, { once: true })
  return await make(context, record, async (undo) => {
    const watch = disk.watch()
    undo.add(() => { watch.stop() })
    await disk.check()
    const folder = files.unpacking(record.id)
    undo.add(async () => { await removeTree(folder) })
    await mkdir(folder, { mode: 0o700 })
    const { sizeGb, inodes, owner, mode } = await unpack(archive, folder, limits, watch)
    // The folder itself stays closed to others; only in the file system the root has the mode that the archive names.
    await withSignals([signal, watch.signal], async (either) => { await files.make(record.id, sizeGb * GIB, { folder, inodes, owner }, either) })
    watch.stop()
    await setRootMode(context, record.id, mode)
    await removeTree(folder)
    return sizeGb
  })
}

async function make (context: MakeContext, record: VolumeRecord, fill: Fill): Promise<VolumeRecord> {
  const { repository, log, resources } = context
  const undo = createUndo()
  try {
    // When it fails the row may be there all the same: it may have been stored, and the answer lost.
    const taken = await nowOrLater(async () => await repository.insert(record), () => { removeLater(context, record) })
    if (taken === 'id') throw VolumeExists(record.id)
    if (taken === 'name') throw VolumeNameTaken(record.name)
    undo.add(async () => { await remove(context, record) })
    await resources?.claim(roomOf(record))
    const sizeGb = await fill(undo)
    // A volume from an archive may be smaller than was asked for, and a smaller claim is never refused. Before the volume is whole: whoever is told of an error must not have one.
    if (sizeGb !== record.sizeGb) await resources?.claim(roomOf({ ...record, sizeGb }))
    await complete(context, record, sizeGb, undo)
    undo.drop()
    return { ...record, status: 'ready', sizeGb }
  } catch (error) {
    for (const failure of await undo.run()) log.error({ err: failure, volume: record.id }, 'a step of a failed volume could not be taken back')
    throw isDiskFull(error) ? DiskFull.from(error) : error
  }
}

/** What a volume takes of the host: all of its size, since somebody may write that much. */
export function roomOf ({ id, name, sizeGb }: VolumeRecord): ResourceClaim {
  return { kind: 'volume', id, name, active: false, vcpus: 0, memoryBytes: 0, diskBytes: sizeGb * GIB, downloadBps: 0, uploadBps: 0, diskIoBps: 0 }
}

async function complete (context: MakeContext, record: VolumeRecord, sizeGb: number, undo: Undo): Promise<void> {
  const { repository } = context
  try {
    await repository.complete(record.id, sizeGb)
  } catch (error) {
    // The row may have been stored all the same, so the disk stays unless it is certain that nobody can find the volume.
    try {
      await repository.abandon(record.id)
    } catch (failure) {
      undo.drop()
      removeLater(context, record)
      throw new AggregateError([error, failure], `volume ${record.id} could be neither stored nor given up; that is decided when its row can be read`)
    }
    throw error
  }
}

const PLAIN_MODE = 0o755
const FOLDER = 0o040000

/** mke2fs does not copy the mode of the root. */
async function setRootMode ({ commands, files }: MakeContext, id: string, mode: number): Promise<void> {
  if (mode === PLAIN_MODE) return
  await commands.run('debugfs', ['-w', '-R', `set_inode_field / mode 0${(FOLDER | mode).toString(8)}`, files.disk(id)], { timeoutMs: 60_000 })
  await chmod(files.disk(id), 0o600)
}
