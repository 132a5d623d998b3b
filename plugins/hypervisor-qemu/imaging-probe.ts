// Finds out whether a VM can be saved and restored here, by doing it with a small one. QEMU's stream differs from version to version, and an invalid
// state shows only when a guest goes on from it.
import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { MemoryImage, Vm, VmImaging, VmSpec } from '../../core/library/hypervisor.ts'
import { isDiskFull } from '../../core/fs/disk-full.ts'
import { unlessAborted } from '../../core/jobs/unless-aborted.ts'
import type { GuestHello, GuestService, GuestSystem } from '../guest/contract.ts'
import { CaptureFailed, RestoreFailed } from '../../core/library/vmm/errors.ts'
import { endLeftOver } from './end-left-over.ts'

const MIB = 2 ** 20
const MEMORY_BYTES = 128 * MIB
// One block, the smallest that Linux takes.
const HOTPLUG_BYTES = 128 * MIB
/** A guest that lives for so long after its restore counts as restored. */
const PROVEN_AFTER_MS = 1000
/** nobody's: of users that VMs may have, the one that no instance gets */
const USER = { uid: 65534, gid: 65534 }

/** Why VMs cannot be saved and restored, for each kind of VM; empty where they can. */
export interface ImagingFindings {
  readonly plain?: string
  /** of VMs with memory that is plugged in */
  readonly hotplug?: string
}

export interface ImagingProbeOptions {
  /** of the VM that is tried; made and removed */
  readonly directory: string
  readonly guest: Pick<GuestService, 'system' | 'link'>
  /** whether memory can be plugged in */
  readonly canPlugMemory: boolean
  readonly launch: (spec: VmSpec, signal: AbortSignal) => Promise<Vm>
  readonly restore: (spec: VmSpec, image: MemoryImage, statePath: string, options: { readonly signal: AbortSignal }) => Promise<Vm>
  /** most time for the guest to answer, `ms` */
  readonly timeoutMs: number
}

/** The specification of the VM for the probe; its files do not exist yet. */
export function probeSpec (directory: string, { kernel, initrd, arguments: words }: Pick<GuestSystem, 'kernel' | 'initrd' | 'arguments'>, { canPlugMemory }: Pick<ImagingProbeOptions, 'canPlugMemory'>): VmSpec {
  const identity = process.getuid?.() === 0 ? USER : undefined
  const file = (name: string): string => join(directory, name)
  const files = { vmm: file('vmm.log'), output: file('output.log'), report: file('report') }
  return { id: 'imaging-probe', directory, vcpus: 1, memoryBytes: MEMORY_BYTES, ...canPlugMemory ? { hotplugBytes: HOTPLUG_BYTES } : {}, balloon: true, kernel: { path: kernel, initrd, arguments: words }, disks: [], files, ...identity === undefined ? {} : { identity } }
}

/** Boots one VM, and a second one only when something is wrong. Rejects with the signal's reason, without the guest's system, and when the disk is full. */
export async function probeImaging (options: ImagingProbeOptions, signal: AbortSignal): Promise<ImagingFindings> {
  const { hotplugBytes, ...spec } = probeSpec(options.directory, await options.guest.system(), options)
  if (!options.canPlugMemory) {
    const problem = await attempt(options, spec, signal)
    return problem === undefined ? {} : { hotplug: problem, plain: problem }
  }
  const hotplug = await attempt(options, { ...spec, hotplugBytes: hotplugBytes ?? 0 }, signal)
  if (hotplug === undefined) return {}
  const plain = await attempt(options, spec, signal)
  return { hotplug, ...plain === undefined ? {} : { plain } }
}

/** Why VMs cannot map a memory file privately and be saved as changes of it; undefined when they can. Rejects as `probeImaging` does. */
export async function probePrivateMemory (options: ImagingProbeOptions, signal: AbortSignal): Promise<string | undefined> {
  const spec = probeSpec(options.directory, await options.guest.system(), { canPlugMemory: false })
  return await attempt(options, spec, signal, saveChanges)
}

/** Why it failed; undefined when it did not. */
async function attempt (options: ImagingProbeOptions, spec: VmSpec, signal: AbortSignal, work = saveAndRestore): Promise<string | undefined> {
  const { directory } = spec
  await endLeftOver(directory)
  await rm(directory, { recursive: true, force: true })
  try {
    await mkdir(directory, { recursive: true, mode: 0o711 })
    // Its user may pass through, and can read nothing but its own files.
    await chmod(dirname(directory), 0o711)
    for (const path of Object.values(spec.files)) await makeFile(path, spec.identity)
    await work(options, spec, signal)
    return undefined
  } catch (error) {
    signal.throwIfAborted()
    // A full disk says nothing about the VMM.
    if (isDiskFull(error)) throw error
    return error instanceof Error ? error.message : String(error)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function makeFile (path: string, identity: VmSpec['identity']): Promise<void> {
  await writeFile(path, '', { mode: 0o600 })
  if (identity !== undefined) await chown(path, identity.uid, identity.gid)
}

/** First from memory without a file, then from memory in a file. */
async function saveAndRestore (options: ImagingProbeOptions, spec: VmSpec, signal: AbortSignal): Promise<void> {
  const path = join(spec.directory, 'memory')
  let vm = await options.launch(spec, signal)
  try {
    const before = await greet(options, vm, signal)
    for (const name of ['first', 'second']) {
      const statePath = join(spec.directory, name)
      const image = await imagingOf(vm).capture({ statePath, memoryPath: path }, signal)
      await end(vm)
      if (spec.identity !== undefined) await chown(path, spec.identity.uid, spec.identity.gid)
      vm = await options.restore({ ...spec, memory: { path, sharing: 'shared' } }, image, statePath, { signal })
      await requireAlive(options, vm, before, signal)
    }
  } finally {
    await end(vm)
  }
}

/** On a file that is only read, then from the changes of it; and once more, as a VM that was made of changes has to tell them from the file, too. */
async function saveChanges (options: ImagingProbeOptions, spec: VmSpec, signal: AbortSignal): Promise<void> {
  const path = join(spec.directory, 'memory')
  let vm = await options.launch(spec, signal)
  try {
    const before = await greet(options, vm, signal)
    let statePath = join(spec.directory, 'base')
    let image = await imagingOf(vm).capture({ statePath, memoryPath: path }, signal)
    await end(vm)
    await chmod(path, 0o444)
    let changes: { readonly changes?: string } = {}
    for (const name of ['first', 'second', 'third']) {
      vm = await options.restore({ ...spec, memory: { path, sharing: 'private', ...changes } }, image, statePath, { signal })
      await requireAlive(options, vm, before, signal)
      if (name === 'third') return
      statePath = join(spec.directory, name)
      const changesPath = `${statePath}.changes`
      image = await imagingOf(vm).capture({ statePath, changesPath }, signal)
      if (image.changes !== true) throw CaptureFailed('all of its memory was written')
      changes = { changes: changesPath }
      await end(vm)
    }
  } finally {
    await end(vm)
  }
}

function imagingOf ({ imaging }: Vm): VmImaging {
  if (imaging === undefined) throw CaptureFailed('its driver makes no image of it')
  return imaging
}

async function requireAlive (options: ImagingProbeOptions, vm: Vm, before: GuestHello, signal: AbortSignal): Promise<void> {
  const proven = performance.now() + PROVEN_AFTER_MS
  requireSame(before, await greet(options, vm, signal))
  await Promise.race([vm.wait(), sleep(Math.max(proven - performance.now(), 0), undefined, { signal })])
  if (vm.state.status !== 'running') throw RestoreFailed(`its guest ran for less than ${PROVEN_AFTER_MS} ms`)
  // Once more: the first answer may have waited in the port since before the capture.
  requireSame(before, await greet(options, vm, signal))
}

function requireSame (before: GuestHello, after: GuestHello): void {
  if (after.bootId !== before.bootId || after.memoryTotalBytes !== before.memoryTotalBytes || after.phase !== before.phase) throw RestoreFailed('its guest is not the one that was saved')
}

/** The guest's HELLO. */
async function greet ({ guest, timeoutMs }: ImagingProbeOptions, vm: Vm, signal: AbortSignal): Promise<GuestHello> {
  const link = guest.link(await vm.connect())
  const over = new AbortController()
  // Nobody waits for the loser of the race.
  link.hello.catch(() => {})
  try {
    const late = sleep(timeoutMs, undefined, { signal: over.signal }).then(() => { throw RestoreFailed(`its guest did not answer within ${timeoutMs} ms`) }, () => new Promise<never>(() => {}))
    const gone = vm.wait().then(() => { throw RestoreFailed('its VM ended before the guest answered') })
    gone.catch(() => {})
    return await unlessAborted(signal, Promise.race([link.hello, late, gone]))
  } finally {
    over.abort()
    link.close()
  }
}

async function end (vm: Vm): Promise<void> {
  await vm.kill()
  vm.release()
}
