// Copies what an instance is to its fork: the disk, and the memory image when the fork is to go on from it.
import { copyFile } from 'node:fs/promises'
import type { MemoryImage } from '../../../core/contracts/hypervisor.ts'
import { copyMemoryFile } from '../../../core/fs/memory-file.ts'
import { bootId } from '../../../core/process/identity.ts'
import { createUndo } from '../../../core/undo.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { isDiskFull } from '../disk-full.ts'
import { DiskFull, ImageMissingHere } from '../errors.ts'
import { beginImage, completeImage, readImage, statePath } from '../image-files.ts'
import { giveFile } from '../files.ts'
import type { LiveInstance } from '../live-instance.ts'
import { logOperation } from '../operations-log.ts'
import type { InstanceRecord } from '../record.ts'
import { allDone } from './insert.ts'
import { requireImaging, sleepIn, takenBack } from './standby.ts'

/** Copies an instance that has no VM. */
export async function copyResting (context: Context, source: LiveInstance, fork: InstanceRecord, withMemory: boolean): Promise<void> {
  const [from, to] = [pathsIn(context, source.id), pathsIn(context, fork.id)]
  const stored = withMemory ? await readImage(from, 'whole') : undefined
  if (withMemory && stored === undefined) throw ImageMissingHere(source.name)
  await namingFullDisk(async () => {
    if (stored !== undefined) await beginImage(to)
    await allDone([
      copyMemoryFile(context.commands, from.overlay, to.overlay),
      ...(stored === undefined ? [] : [copyMemoryFile(context.commands, from.memory, to.memory), copyFile(statePath(from, 'whole'), statePath(to, 'making'))])
    ])
    await own(context, fork, stored?.image)
  })
}

/** Copies an instance that runs: its guest sleeps and its VM is paused meanwhile, and both go on afterwards, whatever happens. */
export async function copyRunning (context: Context, source: LiveInstance, fork: InstanceRecord, withMemory: boolean): Promise<void> {
  const { machine, imaging } = requireImaging('fork', source)
  const [from, to] = [pathsIn(context, source.id), pathsIn(context, fork.id)]
  if (withMemory) await beginImage(to)
  const undo = createUndo()
  const began = performance.now()
  let image: MemoryImage | undefined
  try {
    await sleepIn(context, source, machine, undo)
    undo.add(async () => { await imaging.resume() })
    if (withMemory) image = await imaging.capture({ statePath: statePath(to, 'making'), memoryPath: to.memory })
    else await imaging.pause()
    await allDone([
      copyMemoryFile(context.commands, from.overlay, to.overlay),
      ...(withMemory && imaging.memoryFile !== undefined ? [copyMemoryFile(context.commands, imaging.memoryFile, to.memory)] : [])
    ])
  } catch (error) {
    throw await takenBack(context, 'fork', source, machine, undo, error)
  }
  for (const failure of await undo.run()) context.log.error({ err: failure, instance: source.id }, 'the source of a fork could not go on at once')
  await logOperation(from.operations, `fork: asleep for ${Math.round(performance.now() - began)} ms`, context.log)
  await own(context, fork, image)
}

/** Makes the copies the fork's own. */
async function own (context: Context, fork: InstanceRecord, image: MemoryImage | undefined): Promise<void> {
  const paths = pathsIn(context, fork.id)
  const identity = identityOf(context, fork)
  await giveFile(paths.overlay, identity)
  if (image === undefined) return
  await giveFile(paths.memory, identity)
  await completeImage(paths, { image, source: null, newMachine: true, bootId: bootId() })
}

async function namingFullDisk (work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    if (isDiskFull(error)) throw DiskFull.from(error, 'fork')
    throw error
  }
}
