// Copies an instance that runs, at one moment. Most of it is copied ahead, while it goes on; then its guest sleeps and its VM is paused for as long as it takes to copy what has
// changed meanwhile. Where the file system shares blocks nothing is copied ahead, since the moment itself takes no time.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { MemoryImage, Vm, VmImaging } from '../../../core/library/hypervisor.ts'
import { copyChanged } from '../../../core/library/vmm/held-memory.ts'
import { removeTree } from '../../../core/fs/durable.ts'
import { copySparse, sharesBlocks } from '../../../core/fs/sparse-copy.ts'
import { createUndo, type Undo } from '../../../core/undo.ts'
import { pathsIn, type Context } from '../context.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { logOperation } from '../folder/operations-log.ts'
import { makeOverlaysFolder, overlayPath, overlaysIn } from '../volumes/overlays.ts'
import { overlayDiskOf, volumesOf } from '../volumes/spec.ts'
import { takeBase } from '../memory-image/base.ts'
import { copyRanges } from './copy-ranges.ts'
import type { CopyTarget } from './copy-instance.ts'
import { allDone } from './insert.ts'
import { requireImaging, sleepIn, takenBack } from './standby.ts'

/** A file, and where its copy is put. */
interface FilePair { readonly from: string, readonly to: string }

/** the rest of a copy, to be done while nobody writes the file */
type Finish = () => Promise<void>

/** The source goes on, whatever happens. */
export async function copyRunning (context: Context, call: string, source: LiveInstance, to: CopyTarget, signal: AbortSignal): Promise<MemoryImage | undefined> {
  const { session, imaging } = requireImaging(call, source)
  const { vm } = session
  const undo = createUndo()
  const tracking = createUndo()
  let image: MemoryImage | undefined
  const moments: number[] = []
  const note = (): void => { moments.push(performance.now()) }
  try {
    // Otherwise the guest would write its dirty files while it is put to sleep, and everything that it writes then is copied again.
    await session.flush()
    const pairs = await disksOf(context, source, to)
    const base = to.image?.shared === undefined || imaging.memoryBase === undefined || !await takeBase(to.image.shared, imaging.memoryBase) ? undefined : to.image.shared
    const [memory, ...disks] = await allAhead([memoryAhead(context, imaging, base === undefined ? to.image?.memory : undefined, signal), ...pairs.map(async ({ id, ...pair }) => await diskAhead(context, vm, id, pair, tracking))])
    await session.flush()
    note()
    await sleepIn(context, source, session, undo)
    note()
    undo.add(async () => { await imaging.resume() })
    await imaging.pause()
    note()
    const takeMemory = async (paths: NonNullable<CopyTarget['image']>): Promise<void> => {
      image = await imaging.capture({ statePath: paths.state, memoryPath: paths.memory, ...base === undefined ? {} : { changesPath: base.changes } }, signal)
      if (base !== undefined && image.changes !== true) await removeTree(base.base.folder)
      // Not before the VM is paused: until then the file need not agree with the state.
      await memory?.()
    }
    await allDone([...disks.map(async (finish) => { await finish() }), ...(to.image === undefined ? [] : [takeMemory(to.image)])])
    note()
  } catch (error) {
    const failure = await takenBack(context, { call, instance: source, session }, undo, error)
    await endTracking(context, source, tracking)
    throw failure
  }
  for (const failure of await undo.run()) context.log.error({ err: failure, instance: source.id }, `the source of a ${call} could not go on at once`)
  note()
  await logOperation(pathsIn(context, source.id).operations, `${call}: ${stepsOf(moments)}`, context.log)
  await endTracking(context, source, tracking)
  return image
}

function stepsOf (moments: readonly number[]): string {
  const ms = (from: number, to: number): string => `${Math.round((moments[to] ?? NaN) - (moments[from] ?? NaN))} ms`
  return `asleep for ${ms(0, 4)}: frozen after ${ms(0, 1)}, paused after ${ms(1, 2)}, copied after ${ms(2, 3)}, awake after ${ms(3, 4)}`
}

/** A tracking that could not be ended is ended by the next copy of the VM's disks. */
async function endTracking (context: Context, source: LiveInstance, tracking: Undo): Promise<void> {
  for (const failure of await tracking.run()) context.log.warn({ err: failure, instance: source.id }, 'a VM could not be told to stop noting what its guest writes')
}

async function allAhead (copies: ReadonlyArray<Promise<Finish>>): Promise<readonly Finish[]> {
  // All copies have ended before their files are removed.
  await allDone(copies)
  return await Promise.all(copies)
}

/** The instance's own writable disks. */
async function disksOf (context: Context, { id, record }: LiveInstance, to: CopyTarget): Promise<ReadonlyArray<FilePair & { readonly id: string | undefined }>> {
  const { overlay, volumes } = pathsIn(context, id)
  const names = await overlaysIn(volumes)
  if (names.length > 0) await makeOverlaysFolder(to.volumes)
  const known = new Map(volumesOf(record.spec).map((volume) => [overlayPath(volumes, volume.volumeId), overlayDiskOf(volume, '').id]))
  const others = names.map((name) => ({ from: join(volumes, name), to: join(to.volumes, name), id: known.get(join(volumes, name)) }))
  return [{ from: overlay, to: to.overlay, id: 'overlay' }, ...others]
}

/** @param to absent: the memory is not copied */
async function memoryAhead (context: Context, imaging: VmImaging, to: string | undefined, signal: AbortSignal): Promise<Finish> {
  const { memoryFile } = imaging
  if (to === undefined) return async () => {}
  if (memoryFile !== undefined) return await fileAhead(context, { from: memoryFile, to })
  await imaging.copyAhead?.(to, signal)
  return async () => {}
}

async function diskAhead (context: Context, vm: Vm, id: string | undefined, pair: FilePair, tracking: Undo): Promise<Finish> {
  if (await sharesBlocks(pair)) return await fileAhead(context, pair)
  const changes = id === undefined ? undefined : await vm.trackDisk?.(id)
  if (changes === undefined) return await fileAhead(context, pair)
  tracking.add(async () => { await changes.end() })
  await copyFile(context, pair)
  return async () => { await copyRanges(pair.from, pair.to, await changes.ranges()) }
}

async function fileAhead (context: Context, pair: FilePair): Promise<Finish> {
  if (await sharesBlocks(pair)) return async () => { await copySparse(context.commands, pair.from, pair.to) }
  await copyFile(context, pair)
  return async () => { await copyFile(context, pair) }
}

async function copyFile ({ commands }: Context, { from, to }: FilePair): Promise<void> {
  await copyChanged(commands, { from, bytes: (await stat(from)).size, to })
}
