// Keeps a copy of what a restore uses up until the VM has lived for a moment: a VM that is started on a memory file writes this file, and its disk, with its first step.
//
// Where the file system shares blocks (XFS, btrfs) that costs nothing, and is always done. Elsewhere it is a copy of all that was written, so it is done until a VM has gone
// on from an image of the same kind since the start of the server: the same VMM, processor, devices and kernel arguments. A spare VM that has rehearsed is such a VM: its guest has
// used all devices, and has started a program.
import { link, mkdir, rename, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import { removeTree } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { copySparse, reflink } from '../../../core/fs/sparse-copy.ts'
import { bootId } from '../../../core/process/identity.ts'
import { replaceUntilDone } from '../copies/replace-until-done.ts'
import { replaceByKept, type ReplacementPatch } from '../copies/replacement.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { giveFile } from '../folder/files.ts'
import { changesPath, dropKept, isLost, markOf, readImage, rewriteImage, statePath, writeImage, type StoredImage } from './files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { fitsOnDisk } from './memory-file.ts'
import { lastWriteOf } from '../folder/last-write.ts'
import { logOperation } from '../folder/operations-log.ts'
import { pathsAt, type InstancePaths } from '../folder/paths.ts'
import type { InstanceRecord } from '../model/record.ts'
import { ownVolumeOverlays } from '../volumes/files.ts'
import { copyVolumeOverlays, overlaysIn } from '../volumes/overlays.ts'
import { volumesOf } from '../volumes/spec.ts'
import { settleImage } from './sync.ts'

/** A VM that lives for this long after its restore counts as restored. */
export const PROVEN_AFTER_MS = 1000

/** Images of one kind are restored in the same way. */
export function kindOf ({ image }: Pick<StoredImage, 'image'>): string {
  return `${image.driver} ${image.vmmVersion} ${image.key}`
}

/** Keeps a copy of a whole image and its disks; false where that is not needed, or there is no room for it. Nothing is left of a copy that could not be made. */
export async function keepImage (context: Context, record: InstanceRecord, stored: StoredImage): Promise<boolean> {
  const paths = pathsIn(context, record.id)
  await dropKept(paths)
  // The volume is others' too, so it is not put back; and the memory would not fit a volume whose content has changed.
  if (volumesOf(record.spec).some(({ readonly }) => !readonly)) return false
  try {
    if (await makeCopy(context, record, stored)) {
      await rename(paths.kept.making, paths.kept.whole)
      return true
    }
    await removeTree(paths.kept.making)
  } catch (error) {
    await removeTree(paths.kept.making)
    // It has filled up meanwhile. The restore needs no copy.
    if (!isDiskFull(error)) throw error
    noteNoRoom(context, paths)
  }
  return false
}

async function makeCopy (context: Context, record: InstanceRecord, stored: StoredImage): Promise<boolean> {
  const paths = pathsIn(context, record.id)
  const to = pathsAt(paths.kept.making)
  await mkdir(to.image.whole, { recursive: true, mode: 0o700 })
  if (!await copyFiles(context, paths, to, stored)) return false
  const identity = identityOf(context, record)
  for (const path of [...stored.onBase === undefined ? [to.memory] : [], to.overlay]) await giveFile(path, identity)
  await ownVolumeOverlays(to, identity)
  await link(statePath(paths, 'whole'), statePath(to, 'whole'))
  // The copy is not on disk yet, and is removed before it would be.
  const { compressed, ...rest } = stored
  await writeImage(to, { ...rest, memoryMark: stored.onBase === undefined ? await markOf(to.memory) : '', bootId: bootId() })
  return true
}

/** Copies memory and disks. */
async function copyFiles (context: Context, from: InstancePaths, to: InstancePaths, stored: StoredImage): Promise<boolean> {
  // All of them are on one file system: what it does with the disk it does with the others.
  if (!await reflink(from.overlay, to.overlay)) {
    if (context.provenImages.has(kindOf(stored))) return false
    if (!await fitsOnDisk(from.directory, await writtenBytes(from, stored))) {
      noteNoRoom(context, from)
      return false
    }
    await copySparse(context.commands, from.overlay, to.overlay)
  }
  if (stored.onBase === undefined) await copySparse(context.commands, from.memory, to.memory)
  else await keepBase(from, to, stored.onBase)
  await copyVolumeOverlays(context.commands, from.volumes, to.volumes)
  return true
}

/** What a copy takes: the holes stay holes. */
async function writtenBytes (from: InstancePaths, { onBase }: StoredImage): Promise<number> {
  const overlays = (await overlaysIn(from.volumes)).map((name) => join(from.volumes, name))
  const files = await Promise.all([from.overlay, ...overlays, ...onBase === undefined ? [from.memory] : []].map(async (path) => await stat(path)))
  return files.reduce((sum, { blocks }) => sum + blocks * 512, 0)
}

function noteNoRoom ({ log }: Context, { directory }: InstancePaths): void {
  log.warn({ path: directory }, 'the disk has no room to keep a memory image while a VM is started on it')
}

/** Base and changes are never written, so a second name keeps them; only the disk has to be copied. */
async function keepBase (from: InstancePaths, to: InstancePaths, { changes }: NonNullable<StoredImage['onBase']>): Promise<void> {
  await mkdir(to.base.folder, { mode: 0o700 })
  await link(from.base.memory, to.base.memory)
  if (changes) await link(changesPath(from, 'whole'), changesPath(to, 'whole'))
}

/** Resolves once a VM that was started on an image with a kept copy has lived for long enough; never when the VM ends before. */
export async function proveImage (context: Context, session: GuestSession, stored: StoredImage): Promise<void> {
  const isAlive = await Promise.race([sleep(PROVEN_AFTER_MS, true, { ref: false }), session.ended.then(() => false)])
  if (!isAlive) return await new Promise<never>(() => {})
  session.proven = true
  context.provenImages.add(kindOf(stored))
}

/** Whether a VM that an earlier server has restored has lived for long enough, as far as its files tell: nobody may have watched it. @param restoredAt epoch `ms` */
export async function hasLivedOn (paths: InstancePaths, restoredAt: number | null): Promise<boolean> {
  return restoredAt !== null && await isThere(paths.kept.whole) && await lastWriteOf(paths) - restoredAt > PROVEN_AFTER_MS
}

/** Puts disk and image back as they were before the restore, at once or later. False when no copy was kept, or the host went down before it was on the disk. @throws what keeps it from being done at once */
export async function putBack (context: Context, instance: LiveInstance, why: string): Promise<boolean> {
  const paths = pathsIn(context, instance.id)
  const kept = pathsAt(paths.kept.whole)
  const stored = await readImage(kept, 'whole')
  if (stored === undefined || isLost(stored)) return false
  context.provenImages.delete(kindOf(stored))
  await replaceUntilDone(context, instance, 'those that were kept', async () => {
    if (await isThere(paths.kept.whole)) await rewriteImage(kept, { ...stored, problem: why })
    await replaceByKept(context, instance, paths.kept.whole, standbyPatch(instance.record, stored))
    await logOperation(paths.operations, `restore: failed, disk and memory are as before: ${why}`, context.log)
  })
  settleImage(context, instance)
  return true
}

function standbyPatch (record: InstanceRecord, { image }: StoredImage): ReplacementPatch {
  const standbyAt = Date.parse(image.capturedAt)
  return { handle: null, startedAt: record.startedAt, runningAt: null, stoppedAt: Math.max(standbyAt, record.startedAt ?? 0), standbyAt, exit: null }
}

/** Notes why no VM went on from an image, which is as it was. */
export async function noteProblem (context: Context, instance: LiveInstance, why: string): Promise<void> {
  const paths = pathsIn(context, instance.id)
  const stored = await readImage(paths, 'whole')
  if (stored !== undefined) await rewriteImage(paths, { ...stored, problem: why })
  instance.setImageProblem(why)
}
