// Brings up the VM of an instance in the quickest way: as a clone of a template if that can be, else by a boot. A fault of the template never makes this fail.
import { open, stat } from 'node:fs/promises'
import type { Vm, VmMemoryFile } from '../../../core/library/hypervisor.ts'
import { copySparse, reflink } from '../../../core/fs/sparse-copy.ts'
import { copyChanged } from '../../../core/library/vmm/held-memory.ts'
import { traced } from '../../../core/tracing/span.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { giveFile } from '../folder/files.ts'
import { dropMemory } from '../memory-image/files.ts'
import { fitsOnDisk } from '../memory-image/memory-file.ts'
import { sharedMemory } from '../memory-image/sharing.ts'
import { connectParts } from '../parts/all.ts'
import type { Connection } from '../parts/connection.ts'
import type { InstanceRecord } from '../model/record.ts'
import type { CreateWay } from '../templates/metrics.ts'
import type { Shape, TemplateUse } from '../templates/contract.ts'
import { allDone } from './insert.ts'
import { driverOf, launch, vmSpecOf } from './launch.ts'

const COPY_FAILED = 'the memory of a template could not be copied; the VM boots'

/** The memory for a clone, in the instance's folder. */
export interface ClonedMemory {
  readonly shape: Shape
  readonly use: TemplateUse
  /** Resolves when the memory is complete; the VMM may be started before. */
  readonly filled: Promise<void>
  /** what the VM is restored on */
  readonly file: VmMemoryFile
}

/** What is ready for a VM before it is started. */
export interface Prepared {
  /** undefined when the VM cannot be a clone */
  readonly memory: ClonedMemory | undefined
  readonly connection: Connection
}

/**
 * Connects the parts to the VM and copies the memory for a clone, beside `others`. The caller launches the VM then.
 * When this or the launch rejects, the caller must disconnect the parts.
 */
export async function prepareVm (context: Context, record: InstanceRecord, shape: Shape | undefined, others: readonly Promise<unknown>[]): Promise<Prepared> {
  const cloning = cloneMemory(context, record, shape)
  const connecting = connectParts(context, record)
  try {
    await allDone([...others, cloning, connecting])
  } catch (error) {
    await release(await cloning)
    throw error
  }
  return { memory: await cloning, connection: await connecting }
}

/** Begins to copy the template's memory into the instance's folder; the caller launches a VM on it. Undefined when there is no template, or no room. */
async function cloneMemory (context: Context, record: InstanceRecord, shape: Shape | undefined): Promise<ClonedMemory | undefined> {
  const use = shape === undefined ? undefined : context.templates.use(shape)
  if (shape === undefined || use === undefined) return undefined
  const paths = pathsIn(context, record.id)
  try {
    // Files that an earlier run has left.
    await dropMemory(paths)
    const file = await sharedMemory(context, record.spec, paths, use.files.memory)
    if (file !== undefined) return { shape, use, file, filled: Promise.resolve() }
    // The memory file of a VM that runs must be able to grow.
    if (await fitsOnDisk(paths.directory, record.spec.memoryBytes)) {
      return { shape, use, file: { path: paths.memory, sharing: 'shared' }, ...await fill(context, record, use.files.memory, paths.memory) }
    }
    context.log.info({ instance: record.id }, 'the disk has no room for the memory of a clone; the VM boots')
  } catch (error) {
    context.log.warn({ err: error, instance: record.id }, COPY_FAILED)
  }
  use.release()
  return undefined
}

/** Makes the memory file, with its size, and begins to fill it. */
async function fill (context: Context, record: InstanceRecord, from: string, to: string): Promise<Pick<ClonedMemory, 'filled'>> {
  const identity = identityOf(context, record)
  const isShared = await reflink(from, to)
  if (isShared || driverOf(context, record).imaging?.startsAhead !== true) {
    if (!isShared) await copySparse(context.commands, from, to)
    await giveFile(to, identity)
    return { filled: Promise.resolve() }
  }
  const { size } = await stat(from)
  const file = await open(to, 'wx', 0o600)
  await file.truncate(size).finally(async () => { await file.close() })
  await giveFile(to, identity)
  const filled = copyChanged(context.commands, { from, bytes: size, to })
  // It is awaited later.
  filled.catch(() => {})
  return { filled }
}

/** Nobody uses the template's files, nor writes the instance's, when this resolves. */
async function release (memory: ClonedMemory | undefined): Promise<void> {
  await memory?.filled.catch(() => {})
  memory?.use.release()
}

async function isFilled ({ filled }: ClonedMemory): Promise<boolean> {
  return await filled.then(() => true, () => false)
}

/** Leaves nothing behind when it rejects. */
export async function cloneOrLaunch (context: Context, record: InstanceRecord, image: ReadyImage, { memory, connection }: Prepared): Promise<{ vm: Vm, way: CreateWay }> {
  if (memory === undefined) return { vm: await launch(context, record, image, connection), way: 'boot' }
  const { shape } = memory
  let failure: unknown
  try {
    return { vm: await restore(context, record, image, memory, connection), way: 'clone' }
  } catch (error) {
    failure = error
  } finally {
    await release(memory)
  }
  const vm = await launch(context, record, image, connection)
  if (!await isFilled(memory)) {
    context.log.warn({ err: failure, instance: record.id }, COPY_FAILED)
    return { vm, way: 'boot' }
  }
  // A boot works, so the template was at fault.
  context.log.warn({ err: failure, instance: record.id, template: shape.key }, 'no VM could be made of a template; it is removed')
  context.templates.drop(shape).catch((error: unknown) => { context.log.error({ err: error, template: shape.key }, 'a template could not be removed') })
  return { vm, way: 'boot' }
}

async function restore (context: Context, record: InstanceRecord, image: ReadyImage, { use: { template, files }, file, filled }: ClonedMemory, connection: Connection): Promise<Vm> {
  const { imaging } = driverOf(context, record)
  if (imaging === undefined) throw new Error('the driver makes no memory images any more')
  const spec = await vmSpecOf(context, record, image, connection)
  return await traced(`restore VM ${record.spec.hypervisor}`, {}, async () => await imaging.restore({ ...spec, memory: file }, template.image, files.state, { memoryFilled: filled, otherDisks: ['root', 'overlay'] }))
}
