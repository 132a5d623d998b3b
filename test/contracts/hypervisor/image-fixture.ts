// Tools of the imaging cases: VMs with a memory file, their captures, and what the guest's memory knows.
import { chown, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { HypervisorDriver, HypervisorImaging, MemoryImage, Vm, VmImaging, VmMemoryFile, VmSpec } from '../../../core/library/hypervisor.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { converse, launch, makeSpec, workload, type HypervisorFixture } from './fixture.ts'
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
  // A driver may know of no memory in a file, and write it out at each capture.
  return { spec: spec.memory === undefined ? spec : { ...spec, memory: { ...spec.memory, path: memoryPath } }, image, statePath, memoryPath, tick, bootId }
}

/** A running, ticking VM with a memory file, and its capture: it is paused. */
export async function capturedShared (t: Test, fixture: HypervisorFixture): Promise<{ vm: Vm, captured: Captured }> {
  const spec = await sharedSpec(t, fixture)
  const vm = await launch(t, await fixture.makeDriver(), spec)
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
    if (!disk.readonly) await copySparse(createHostCommands(), disk.path, path)
    disks.push({ ...disk, path })
  }
  return { ...other, disks, memory: { path: memoryPath, sharing: 'private' } }
}
