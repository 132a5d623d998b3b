// Copies an instance: its disk, and its memory image when the copy is to go on from memory. The source is an instance that has no VM, or the files of an earlier copy; the target is
// the files of an instance, or a place outside of any instance.
import { constants } from 'node:fs'
import { copyFile, link, stat } from 'node:fs/promises'
import type { MemoryImage } from '../../../core/library/hypervisor.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import { bootId } from '../../../core/process/identity.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { takeBase } from '../memory-image/base.ts'
import { bringMemory } from '../memory-image/bring.ts'
import { memoryIn } from '../compression/compressed-image.ts'
import { pathsIn, type Context } from '../context.ts'
import type { CopyFiles } from '../contract.ts'
import { ImageMissingHere } from '../errors.ts'
import { beginImage, changesPath, completeImage, readImage, statePath, type StoredImage } from '../memory-image/files.ts'
import { giveFile, type Identity } from '../folder/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { InstancePaths } from '../folder/paths.ts'
import { ownVolumeOverlays } from '../volumes/files.ts'
import { copyVolumeOverlays } from '../volumes/overlays.ts'
import { allDone } from './insert.ts'

/** Where a copy is put. None of the files exist yet. The caller removes what a failure leaves of them. */
export interface CopyTarget {
  readonly overlay: string
  /** folder of the disks of volumes with an overlay; made when there are any */
  readonly volumes: string
  /** absent: the disk alone is copied */
  readonly image?: CopiedImage
}

export interface CopiedImage {
  readonly state: string
  readonly memory: string
  /** where the memory is put instead when the copy can share a base with its source, and what differs from that */
  readonly shared?: Pick<InstancePaths, 'base'> & { readonly changes: string }
}

/** Makes an instance's folder ready to be copied into. `own` completes it afterwards. */
export async function targetIn (paths: InstancePaths, { withMemory, shares = false }: { readonly withMemory: boolean, readonly shares?: boolean }): Promise<CopyTarget> {
  const { overlay, volumes } = paths
  if (!withMemory) return { overlay, volumes }
  await beginImage(paths)
  return { overlay, volumes, image: { state: statePath(paths, 'making'), memory: paths.memory, ...shares ? { shared: { base: paths.base, changes: changesPath(paths, 'making') } } : {} } }
}

/** Copies files that nobody changes meanwhile. A memory that becomes the base of the copy may be written by nobody later, either. */
export async function copyFiles (context: Context, from: CopyFiles, to: CopyTarget): Promise<void> {
  await allDone([
    copySparse(context.commands, from.overlay, to.overlay),
    copyVolumeOverlays(context.commands, from.volumes, to.volumes),
    ...(to.image === undefined ? [] : [copyMemory(context, from.memory, to.image), copyFile(from.state, to.image.state, constants.COPYFILE_EXCL)])
  ])
}

async function copyMemory (context: Context, from: CopyFiles['memory'], { memory, shared }: CopiedImage): Promise<void> {
  const isOnBase = shared !== undefined && from.algorithm === undefined && await takeBase(shared, from.path)
  if (!isOnBase) await bringMemory(context, from, memory)
  // Written once, as the base is.
  else if (from.changes !== undefined) await link(from.changes, shared.changes)
}

/** Copies an instance that has no VM. Returns the content of `image.json` when the image is copied too. */
export async function copyResting (context: Context, call: string, source: LiveInstance, to: CopyTarget): Promise<StoredImage | undefined> {
  const from = pathsIn(context, source.id)
  const stored = to.image === undefined ? undefined : await readImage(from, 'whole')
  if (to.image !== undefined && stored === undefined) throw ImageMissingHere(call, source.name)
  const memory = stored === undefined ? { path: from.memory } : memoryIn(from, stored)
  // Memory that is the source's own will be written by the source.
  const own = stored?.onBase === undefined ? withoutSharing(to) : to
  await copyFiles(context, { overlay: from.overlay, volumes: from.volumes, state: statePath(from, 'whole'), memory }, own)
  return stored
}

function withoutSharing ({ image, ...rest }: CopyTarget): CopyTarget {
  return image === undefined ? rest : { ...rest, image: { state: image.state, memory: image.memory } }
}

/** The facts about an image whose memory is a file of its own now. */
export async function wholeImage ({ changes, ...image }: MemoryImage, memory: string): Promise<MemoryImage> {
  return changes === undefined ? image : { ...image, memoryStoredBytes: (await stat(memory)).blocks * 512 }
}

interface Copied {
  readonly identity: Identity | undefined
  /** undefined: the disk alone was copied */
  readonly image: MemoryImage | undefined
  /** whether the guest has to be told that it is another machine now */
  readonly newMachine: boolean
}

/** Completes an instance's folder that files were copied into: the VM's user may write them, and the image is whole. */
export async function own (paths: InstancePaths, { identity, image, newMachine }: Copied): Promise<void> {
  await giveFile(paths.overlay, identity)
  await ownVolumeOverlays(paths, identity)
  if (image === undefined) return
  if (await isThere(paths.base.folder)) {
    const changes = await isThere(changesPath(paths, 'making'))
    await completeImage(paths, { image, source: null, newMachine, bootId: bootId(), onBase: { changes } })
    return
  }
  await giveFile(paths.memory, identity)
  await completeImage(paths, { image: await wholeImage(image, paths.memory), source: null, newMachine, bootId: bootId() })
}
