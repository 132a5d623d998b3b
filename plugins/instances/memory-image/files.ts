// An instance's memory image on disk: the memory file, and a folder with the rest, whose name says at which stage the image is.
//
// The folder is made as `standby.making` and renamed to `standby` when the image is whole: from then on, and only then, the instance can be
// restored from it. It is renamed to `standby.taken` before a VM is started on the memory, which uses the image up with its first step.
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { MemoryImage, VmHandle } from '../../../core/library/hypervisor.ts'
import type { ProcessIdentity } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { Compression } from '../../../core/library/compressed-memory.ts'
import { removeTree, renameDurably, writeFileDurably } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { readIfThere } from '../../../core/fs/read-if-there.ts'
import { bootId } from '../../../core/process/identity.ts'
import { syncMemoryImage } from '../../../core/library/memory-image.ts'
import type { InstancePaths } from '../folder/paths.ts'

const VERSION = 1
/** version for an image on a base: an older server would look for its memory file */
const ON_BASE_VERSION = 2

/** The content of `image.json`, which is beside the state file. */
export interface StoredImage {
  readonly version: number
  readonly image: MemoryImage
  /** the VM that was captured; null when it was another instance's */
  readonly source: ProcessIdentity | null
  /** modification time of the memory file, `ns`: when it has changed, a VM has run on the file. Empty for an image on a base, which no VM writes: the note of its taker tells whether one has run */
  readonly memoryMark: string
  /** the memory is the instance's base, and what differs from it, if anything does; absent: the memory file */
  readonly onBase?: { readonly changes: boolean }
  /** the image was copied from another instance, and the guest has not been told yet that it is a machine of its own */
  readonly newMachine: boolean
  /** the boot of the host during which the image was made; null once everything is on disk, so that it would outlive a power cut */
  readonly bootId: string | null
  /** why the last VM that was started on it did not go on; absent: no VM was */
  readonly problem?: string
  /**
   * the compression that was asked for, the epoch `ms` before which it must not begin, and the delay that led to this time: so a clock that is put back lengthens no delay.
   * null: none; absent: nobody asked, so the instance's policy holds
   */
  readonly wanted?: Compression & { readonly notBefore: number, readonly delayMs?: number } | null
  /** how the memory is compressed in the image's folder, with the bytes of both files; absent: it is not compressed, and the memory file counts */
  readonly compressed?: Compression & { readonly bytes: number, readonly memoryBytes: number }
}

export type ImageStage = keyof InstancePaths['image']

/** What is in an instance's folder beside its disk and logs. */
export interface Remains {
  readonly memory: boolean
  readonly image: ReadonlySet<ImageStage>
  /** whether there is a kept copy of an image that was taken */
  readonly kept: boolean
  /** whether there are files that are to replace disk and memory */
  readonly replacement: boolean
}

const STAGES = ['making', 'whole', 'taken'] as const satisfies readonly ImageStage[]

/** One look at the folder. A folder that does not exist is like an empty one. */
export async function readRemains (paths: InstancePaths): Promise<Remains> {
  const names = new Set(await namesIn(paths.directory))
  const has = (path: string): boolean => names.has(basename(path))
  return {
    memory: has(paths.memory) || has(paths.base.folder),
    image: new Set(STAGES.filter((stage) => has(paths.image[stage]))),
    kept: Object.values(paths.kept).some(has),
    replacement: Object.values(paths.replacement).some(has)
  }
}

async function namesIn (folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

export function statePath (paths: InstancePaths, stage: ImageStage): string {
  return join(paths.image[stage], 'state')
}

/** What the VM of an image had changed of its base. */
export function changesPath (paths: InstancePaths, stage: ImageStage): string {
  return join(paths.image[stage], 'changes')
}

/** Makes an empty folder for an image that is to be made, and removes what earlier ones have left. */
export async function beginImage (paths: InstancePaths): Promise<void> {
  await dropImage(paths)
  await mkdir(paths.image.making, { mode: 0o700 })
}

/** The content of `image.json`; `undefined` when there is no image of that stage. */
export async function readImage (paths: InstancePaths, stage: ImageStage): Promise<StoredImage | undefined> {
  let text
  try {
    text = await readFile(manifestPath(paths, stage), 'utf8')
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ENOTDIR')) return undefined
    throw error
  }
  const stored = parse(text)
  if (stored !== undefined && ![VERSION, ON_BASE_VERSION].includes(stored.version)) throw new Error(`the memory image in ${paths.directory} is of version ${stored.version}, and not ${VERSION}`)
  return stored
}

/**
 * Makes the captured image whole. Not synced: it outlives any crash of the server, but not yet one of the host,
 * as its `bootId` says.
 */
export async function completeImage (paths: InstancePaths, facts: Omit<StoredImage, 'version' | 'memoryMark'>): Promise<StoredImage> {
  const stored: StoredImage = { version: facts.onBase === undefined ? VERSION : ON_BASE_VERSION, ...facts, memoryMark: facts.onBase === undefined ? await markOf(paths.memory) : '' }
  await writeFile(manifestPath(paths, 'making'), JSON.stringify(stored), { mode: 0o600 })
  await removeTree(paths.image.whole)
  await rename(paths.image.making, paths.image.whole)
  return stored
}

/** Writes all files of a whole image to the disk, however long that takes. Afterwards `markDurable` is to be called while nobody else changes the image. */
export async function syncImage (paths: InstancePaths): Promise<void> {
  const stored = await readImage(paths, 'whole')
  const memory = stored?.onBase === undefined ? [paths.memory] : [paths.base.memory, ...stored.onBase.changes ? [changesPath(paths, 'whole')] : []]
  // The writable disk is synced too: memory and disk must be of the same moment.
  await syncMemoryImage([...memory, paths.overlay, statePath(paths, 'whole')])
}

/** Stores `image.json` of an image whose folder has been made and is known to nobody else. */
export async function writeImage (paths: InstancePaths, stored: StoredImage): Promise<void> {
  await writeFile(manifestPath(paths, 'whole'), JSON.stringify(stored), { mode: 0o600 })
}

/** Notes that an image has been synced. */
export async function markDurable (paths: InstancePaths, stored: StoredImage, stage: ImageStage = 'whole'): Promise<void> {
  await rewriteImage(paths, { ...stored, bootId: null }, stage)
}

/** Replaces `image.json` of an image in one step. */
export async function rewriteImage (paths: InstancePaths, stored: StoredImage, stage: ImageStage = 'whole'): Promise<void> {
  await writeFileDurably(manifestPath(paths, stage), JSON.stringify(stored), 0o600)
}

/** Takes the image before a VM is started on it: a VM that has run is never started again from where it was, not even after a power cut. When this rejects, the image is whole. */
export async function takeImage (paths: InstancePaths, { bootId }: StoredImage): Promise<void> {
  await removeTree(paths.image.taken)
  // An image that is not on disk yet would not outlive a power cut anyway, and waiting for the disk now would mean waiting for all of it.
  if (bootId !== null) return await rename(paths.image.whole, paths.image.taken)
  try {
    await renameDurably(paths.image.whole, paths.image.taken)
  } catch (error) {
    // It may be renamed, and not on disk.
    if (await isThere(paths.image.taken)) await returnImage(paths)
    throw error
  }
}

/** The image that an instance in standby can go on from: the whole one, or one that was taken and that no VM has run on, which is given back. */
export async function readUsable (paths: InstancePaths): Promise<StoredImage | undefined> {
  const whole = await readImage(paths, 'whole')
  if (whole !== undefined) return whole
  const taken = await readImage(paths, 'taken')
  if (taken === undefined || !await isUntouched(paths, taken)) return undefined
  await returnImage(paths)
  return taken
}

/** Whether no VM has run on the memory since the image was made. */
export async function isUntouched (paths: InstancePaths, stored: StoredImage): Promise<boolean> {
  if (stored.onBase !== undefined) return await isThere(paths.base.memory) && await takerOf(paths) === undefined
  try {
    return await markOf(paths.memory) === stored.memoryMark
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

/** Notes which VM is about to run on the image that was taken. */
export async function noteTaker (paths: InstancePaths, handle: VmHandle): Promise<void> {
  await writeFile(takerPath(paths), JSON.stringify(handle), { mode: 0o600 })
}

/** Marks the image that was taken as one that a VM has run on. Called before a kept VM goes on: that VM has the memory already, and when it writes to pages that it has written before, no file's time changes. */
export async function markTouched (paths: InstancePaths): Promise<void> {
  const now = new Date()
  // Of an image on a base, the note of its taker is the mark.
  if (await isThere(paths.memory)) await utimes(paths.memory, now, now)
}

/** The VM that the image was taken for. This note is all that is known of the VM when a server has died before it stored it. Undefined for a note that was cut off: its guest has not run then. */
export async function takerOf (paths: InstancePaths): Promise<VmHandle | undefined> {
  try {
    return JSON.parse(await readIfThere(takerPath(paths)) ?? '') as VmHandle
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** When the image was taken for a VM, epoch `ms`; null: it was not. */
export async function takenAt (paths: InstancePaths): Promise<number | null> {
  try {
    return Math.round((await stat(takerPath(paths))).mtimeMs)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null
    throw error
  }
}

/** Gives back an image that was taken but not used. */
export async function returnImage (paths: InstancePaths): Promise<void> {
  await rm(takerPath(paths), { force: true })
  await rename(paths.image.taken, paths.image.whole)
}

/** Whether a VM is being captured, or was when the server ended. */
export async function hasUnfinishedImage (paths: InstancePaths): Promise<boolean> {
  return (await readdir(paths.directory)).includes(basename(paths.image.making))
}

/** Removes all of an image but the memory, which a VM may be using, and the kept copy. The folder of a whole image goes first. */
export async function dropImage (paths: InstancePaths): Promise<void> {
  for (const stage of ['whole', 'making', 'taken'] as const) await removeTree(paths.image[stage])
  await dropKept(paths)
}

/** Removes the copy of an image and its disk that was kept in case no VM goes on from them. */
export async function dropKept (paths: InstancePaths): Promise<void> {
  for (const path of Object.values(paths.kept)) await removeTree(path)
}

/** Removes what a capture has written, or had begun to write, of memory that a VM keeps in no file. */
export async function dropCaptured (paths: InstancePaths): Promise<void> {
  // The second is what QEMU makes the first of (`CaptureFiles.memoryPath`).
  for (const path of [paths.memory, `${paths.memory}.changes`]) await removeTree(path)
}

/** Removes memory and image of an instance that neither has a VM nor needs them any more. */
export async function dropMemory (paths: InstancePaths): Promise<void> {
  await dropImage(paths)
  await dropCaptured(paths)
  await removeTree(paths.base.folder)
}

/** Whether the host has restarted before the image was on disk. */
export function isLost ({ bootId: boot }: StoredImage): boolean {
  return boot !== null && boot !== bootId()
}

/** Whether the image was made from this very VM. */
export function isImageOf (stored: StoredImage, handle: VmHandle): boolean {
  const { source } = stored
  return source !== null && source.pid === handle.pid && source.startTicks === handle.startTicks && source.bootId === handle.bootId
}

/** Undefined for a file that the host had not yet written out when its power went. */
function parse (text: string): StoredImage | undefined {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function takerPath (paths: InstancePaths): string {
  return join(paths.image.taken, 'vm.json')
}

function manifestPath (paths: InstancePaths, stage: ImageStage): string {
  return join(paths.image[stage], 'image.json')
}

/** The `memoryMark` of a memory file. */
export async function markOf (path: string): Promise<string> {
  return String((await stat(path, { bigint: true })).mtimeNs)
}
