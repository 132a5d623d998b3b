// Tools of the imaging cases: VMs with a memory file, their captures, and what the guest's memory knows.
import { chown, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { HypervisorDriver, HypervisorImaging, MemoryImage, Vm, VmImaging, VmMemoryFile, VmSpec } from '../../../core/library/hypervisor.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { converse, launch, makeSpec, workload, type Booted, type HypervisorFixture } from './fixture.ts'
import { isEmulatedHost } from '../../emulated-host/slow.ts'
import { eventually } from '../../helpers/eventually.ts'

export interface Captured {
  readonly spec: VmSpec
  readonly image: MemoryImage
  readonly statePath: string
  readonly memoryPath: string
  /** what the guest's memory held just before */
  readonly tick: Tick
  readonly bootId: string
}

export interface Tick { readonly nonce: string, readonly count: number }

/** The driver's facet, whose absence skips the cases before they begin. */
export function imagingOf (driver: HypervisorDriver): HypervisorImaging {
  if (driver.imaging === undefined) throw new Error('the driver makes no memory images')
  return driver.imaging
}

/** A VM's facet. */
export function facetOf (vm: Vm): VmImaging {
  if (vm.imaging === undefined) throw new Error('the VM makes no memory images')
  return vm.imaging
}

/** A specification like `makeSpec`'s, with an empty memory file. */
export async function sharedSpec (t: Test, fixture: HypervisorFixture, options: Parameters<typeof makeSpec>[2] = {}): Promise<VmSpec> {
  const spec = await makeSpec(t, fixture, options)
  return { ...spec, memory: await memoryFile(spec, 'shared') }
}

async function memoryFile (spec: VmSpec, sharing: VmMemoryFile['sharing']): Promise<VmMemoryFile> {
  const path = join(spec.directory, 'memory')
  await writeFile(path, '', { mode: 0o600 })
  await own(spec, path)
  return { path, sharing }
}

/** Gives a file to the VM's user. */
export async function own ({ identity }: VmSpec, path: string): Promise<void> {
  if (identity !== undefined) await chown(path, identity.uid, identity.gid)
}

/** The last whole line that `tick` has printed. */
export async function lastTick (path: string): Promise<Tick | undefined> {
  const line = (await readFile(path, 'utf8')).split('\n').at(-2)
  const [nonce, count] = line?.split(' ') ?? []
  return nonce === undefined || count === undefined ? undefined : { nonce, count: Number(count) }
}

/** Waits until the program has counted further than `from`. */
export async function ticking (path: string, from = 0): Promise<Tick> {
  let found: Tick | undefined
  await eventually(`${path} counts beyond ${from}`, async () => {
    found = await lastTick(path)
    return found !== undefined && found.count > from
  })
  if (found === undefined) throw new Error('unreachable')
  return found
}

/** Captures a VM that runs `tick` into the folder of `spec`. */
export async function captureHere (t: Test, fixture: HypervisorFixture, vm: Vm, spec: VmSpec): Promise<Captured> {
  const { bootId } = await (await converse(t, fixture, vm)).hello
  const tick = await ticking(spec.files.output)
  const statePath = join(spec.directory, 'state')
  const written = join(spec.directory, 'memory-written')
  const image = await facetOf(vm).capture({ statePath, memoryPath: written })
  const memoryPath = facetOf(vm).memoryFile ?? written
  await own(spec, memoryPath)
  // A driver may know of no memory in a file, and write it out at each capture.
  return { spec: spec.memory === undefined ? spec : { ...spec, memory: { ...spec.memory, path: memoryPath } }, image, statePath, memoryPath, tick, bootId }
}

/** Captures a VM into its folder, whether its driver has the memory in a file already or writes it out at each capture; it can be restored from there. @param name of the new files */
export async function captureInto (vm: Vm, spec: VmSpec, name: string): Promise<{ readonly image: MemoryImage, readonly statePath: string, readonly memory: VmMemoryFile }> {
  const [statePath, written] = [join(spec.directory, `${name}-state`), join(spec.directory, `${name}-memory`)]
  const image = await facetOf(vm).capture({ statePath, memoryPath: written })
  const path = facetOf(vm).memoryFile ?? written
  await own(spec, path)
  return { image, statePath, memory: { path, sharing: 'shared' } }
}

/**
 * Boots one for all cases that are not about booting: an emulated boot takes two seconds of processor time, and more on an emulated host; a restore takes a fifth of that. Undefined where
 * nothing is gained by it (a host's own KVM, a double) or a driver makes no images.
 */
export async function bootOnce (t: Test, fixture: HypervisorFixture): Promise<Booted | undefined> {
  const driver = await fixture.makeDriver()
  if (fixture.isDouble === true || driver.imaging === undefined || (!isEmulatedHost && (await driver.probe()).acceleration !== 'tcg')) return undefined
  const spec = await sharedSpec(t, fixture)
  const vm = await launch(t, driver, spec)
  await converse(t, fixture, vm)
  const [statePath, written] = [join(spec.directory, 'state'), join(spec.directory, 'memory-written')]
  const image = await facetOf(vm).capture({ statePath, memoryPath: written })
  const memoryPath = facetOf(vm).memoryFile ?? written
  await vm.kill()
  return { image, statePath, memoryPath }
}

/** A VM whose guest waits for its program, with its memory in a file of its own: one that goes on from what `bootOnce` left, or else one that boots. */
export async function waitingVm (t: Test, fixture: HypervisorFixture, driver: HypervisorDriver, asked: VmSpec): Promise<{ readonly vm: Vm, readonly spec: VmSpec }> {
  const booted = await fixture.booted?.()
  if (booted === undefined) return { vm: await launch(t, driver, asked), spec: asked }
  const spec = { ...asked, memory: asked.memory ?? await memoryFile(asked, 'shared') }
  await rm(spec.memory.path)
  await copySparse(createHostCommands(), booted.memoryPath, spec.memory.path)
  await own(spec, spec.memory.path)
  const vm = await imagingOf(driver).restore(spec, booted.image, booted.statePath)
  t.teardown(() => vm.kill())
  return { vm, spec }
}

/** A running, ticking VM with a memory file, and its capture: it is paused. */
export async function capturedShared (t: Test, fixture: HypervisorFixture): Promise<{ vm: Vm, captured: Captured }> {
  const { vm, spec } = await waitingVm(t, fixture, await fixture.makeDriver(), await sharedSpec(t, fixture))
  return { vm, captured: await runAndCapture(t, fixture, vm, spec) }
}

/** Has a new VM run `tick`, and captures it into its own folder. */
export async function runAndCapture (t: Test, fixture: HypervisorFixture, vm: Vm, spec: VmSpec): Promise<Captured> {
  const link = await converse(t, fixture, vm)
  await link.run(workload('tick'))
  return await captureHere(t, fixture, vm, spec)
}

/** Another VM's folder and files, with copies of the captured one's disks, on its memory, privately. */
export async function forkSpec (t: Test, fixture: HypervisorFixture, { spec, memoryPath }: Pick<Captured, 'spec' | 'memoryPath'>): Promise<VmSpec> {
  const other = await makeSpec(t, fixture)
  const disks = []
  for (const disk of spec.disks) {
    const path = disk.readonly ? disk.path : join(other.directory, `fork-${disk.id}`)
    if (!disk.readonly) {
      await copySparse(createHostCommands(), disk.path, path)
      await own(other, path)
    }
    disks.push({ ...disk, path })
  }
  return { ...other, disks, memory: { path: memoryPath, sharing: 'private' } }
}
