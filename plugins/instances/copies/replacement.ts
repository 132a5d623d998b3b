// Replaces disk and memory of an instance, so that a crash at any moment leaves all of the old or all of the new.
//
// Everything new is gathered in a folder `replacement.making` and brought to the disk. Its renaming to `replacement` decides: from then on the new files
// are moved into place, the row is changed, and the folder goes. Each of these steps can be done again, and the next start of the server does so.
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { removeTree, renameDurably, syncFile, syncFolder, writeFileDurably } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { readIfThere } from '../../../core/fs/read-if-there.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import type { CopyFiles, InstanceCopy } from '../contract.ts'
import { copyWithRoom } from '../host/copy-with-room.ts'
import { dropMemory, markDurable, readImage, syncImage } from '../memory-image/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { copyFiles, own, targetIn } from '../operations/copy-instance.ts'
import { pathsAt, type InstancePaths } from '../folder/paths.ts'
import type { InstanceRecord } from '../model/record.ts'
import { syncVolumeOverlays } from '../volumes/overlays.ts'

const VERSION = 1

/** What is stored of an instance when its files have been replaced. Without a spec, its spec stays. */
export type ReplacementPatch = Pick<InstanceRecord, 'handle' | 'startedAt' | 'runningAt' | 'stoppedAt' | 'standbyAt' | 'exit'> & Partial<Pick<InstanceRecord, 'spec'>>

/** The content of `replacement.json`. */
interface Replacement {
  readonly version: number
  /** version of the row that `patch` was made for */
  readonly rowVersion: number
  readonly withMemory: boolean
  readonly patch: ReplacementPatch
}

export interface ReplacementOptions {
  readonly copy: InstanceCopy
  readonly files: CopyFiles
  readonly withMemory: boolean
  readonly newMachine: boolean
  readonly patch: ReplacementPatch
}

/** Gathers the new files. Once it returns, the replacement is decided; when it rejects, it leaves nothing. */
export async function gatherReplacement (context: Context, record: InstanceRecord, options: ReplacementOptions): Promise<void> {
  const { making, whole } = pathsIn(context, record.id).replacement
  await removeTree(making)
  try {
    await mkdir(making, { mode: 0o700 })
    await bringFiles(context, record, pathsAt(making), options)
    const replacement: Replacement = { version: VERSION, rowVersion: record.version, withMemory: options.withMemory, patch: options.patch }
    await writeFileDurably(journalPath(making), JSON.stringify(replacement), 0o600)
    await renameDurably(making, whole)
  } catch (error) {
    await discard(whole, making)
    throw error
  }
}

/**
 * Replaces the disk and the image that a VM has gone on from by the copies that were kept. From the renaming on, a crash only delays this. Can be repeated.
 * @param folder with the files of an instance, as `pathsAt` has them
 */
export async function replaceByKept (context: Context, instance: LiveInstance, folder: string, patch: ReplacementPatch): Promise<void> {
  const { directory, replacement: { whole } } = pathsIn(context, instance.id)
  if (await isThere(folder)) {
    await removeTree(whole)
    await instance.written()
    const replacement: Replacement = { version: VERSION, rowVersion: instance.record.version, withMemory: true, patch }
    await writeFileDurably(journalPath(folder), JSON.stringify(replacement), 0o600)
    await renameDurably(folder, whole)
  } else {
    // The renaming was done, and may not be on disk.
    await syncFolder(directory)
  }
  await settleReplacement(context, instance)
}

async function bringFiles (context: Context, record: InstanceRecord, to: InstancePaths, { copy, files, withMemory, newMachine }: ReplacementOptions): Promise<void> {
  const target = await targetIn(to, { withMemory })
  await copyWithRoom(context, async (context) => { await copyFiles(context, files, target) })
  await own(to, { identity: identityOf(context, record), image: withMemory ? copy.memory : undefined, newMachine })
  await syncVolumeOverlays(to.volumes)
  const stored = withMemory ? await readImage(to, 'whole') : undefined
  if (stored === undefined) return await syncFile(to.overlay)
  await syncImage(to)
  await markDurable(to, stored)
}

/** Takes the renaming back when it was done but may not be on disk, so that a replacement is never half there. */
async function discard (whole: string, making: string): Promise<void> {
  if (await isThere(whole)) await rename(whole, making)
  await removeTree(making)
}

/** Finishes a replacement that was decided, and removes one that was not. When a decided one cannot be finished, the instance is neither the old nor the new one, and Unknown. */
export async function settleReplacement (context: Context, instance: LiveInstance): Promise<void> {
  const paths = pathsIn(context, instance.id)
  const { making, whole } = paths.replacement
  await removeTree(making)
  const replacement = await readReplacement(whole)
  if (replacement !== undefined) await putInPlace(instance, paths, replacement)
  if (!await isThere(whole)) return
  await removeTree(whole)
  // Before anybody changes the row or starts a VM: after a power cut the folder must not be back.
  await syncFolder(paths.directory)
}

async function putInPlace (instance: LiveInstance, paths: InstancePaths, replacement: Replacement): Promise<void> {
  const { withMemory, patch } = replacement
  try {
    // Also when the row has the patch: it may have got it with another change, before all files were moved.
    await moveFiles(pathsAt(paths.replacement.whole), paths, withMemory)
    await syncFolder(paths.directory)
    if (isOwed(replacement, instance.record)) await instance.save(patch)
  } catch (error) {
    instance.setProblem(`disk and memory that are to replace its own could not be put in place (${error instanceof Error ? error.message : String(error)})`)
    // What else is changed of it until this is done is changed of the new one.
    if (isOwed(replacement, instance.record)) instance.patchInMemory(patch)
    throw error
  }
}

/** Whether the row lacks the patch. A later version alone does not tell: somebody may have changed something else meanwhile. Nobody starts or restores the instance before this is done. */
function isOwed ({ rowVersion, patch }: Replacement, { version, handle, standbyAt, stoppedAt }: InstanceRecord): boolean {
  return version === rowVersion || handle !== patch.handle || standbyAt !== patch.standbyAt || stoppedAt !== patch.stoppedAt
}

/** Can be repeated: a file that was moved is no longer there, and is skipped. */
async function moveFiles (from: InstancePaths, to: InstancePaths, withMemory: boolean): Promise<void> {
  if (await isThere(from.overlay)) await rename(from.overlay, to.overlay)
  if (await isThere(from.volumes)) {
    await removeTree(to.volumes)
    await rename(from.volumes, to.volumes)
  }
  if (!withMemory) return await dropMemory(to)
  if (!await isThere(from.image.whole)) return
  if (await isThere(from.memory)) {
    await dropMemory(to)
    await rename(from.memory, to.memory)
  }
  if (await isThere(from.base.folder)) {
    await dropMemory(to)
    await rename(from.base.folder, to.base.folder)
  }
  await rename(from.image.whole, to.image.whole)
}

async function readReplacement (folder: string): Promise<Replacement | undefined> {
  const text = await readIfThere(journalPath(folder))
  if (text === undefined) return undefined
  const replacement: Replacement = JSON.parse(text)
  if (replacement.version !== VERSION) throw new Error(`the replacement in ${folder} is of version ${replacement.version}, and not ${VERSION}`)
  return replacement
}

function journalPath (folder: string): string {
  return join(folder, 'replacement.json')
}
