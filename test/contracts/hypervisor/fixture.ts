// What the conformance cases need of a driver under test, and the small tools they share.
import { chmod, chown, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import type { HypervisorDriver, MemoryImage, Vm, VmSpec, VmState, VmStatus } from '../../../core/library/hypervisor.ts'
import { PATIENCE_MS } from '../../helpers/eventually.ts'
import { evidenceOfVm } from '../../helpers/evidence.ts'
import type { GuestLink, GuestService, Workload } from '../../../plugins/guest/contract.ts'
import type { VmmAccess } from './vmm.ts'

/** A guest that has booted and waits for its program, as an image. */
export interface Booted {
  readonly image: MemoryImage
  readonly statePath: string
  readonly memoryPath: string
}

export interface HypervisorFixture {
  /** module that exports `makeDriver`, for the cases that need a server process of their own to crash */
  readonly module: URL
  /** a driver as a server that has just started makes it */
  makeDriver (): Promise<HypervisorDriver>
  readonly guest: Pick<GuestService, 'link'>
  /**
   * what a VM is made of apart from its folder, files and user. Its image has the programs `wait`, `count`, `print TEXT` and `exit CODE` in /bin,
   * and for drivers that make memory images `tick`, which prints a random nonce and a counter that it keeps in memory alone, some 50 times a second.
   * For drivers that plug memory in, `hold MIB`, which fills so much of its memory and prints a sum of that again and again.
   */
  makeMachine (folder: string): Promise<Pick<VmSpec, 'kernel' | 'disks' | 'vcpus' | 'memoryBytes'>>
  /** Guests that have no kernel: what only one can show is left out. */
  readonly isDouble?: boolean
  /** VMMs that are no processes: what only one can show is left out, and the rest asks here. */
  readonly vmm?: VmmAccess
  /** what `waitingVm` makes VMs of */
  readonly booted?: () => Promise<Booted | undefined>
  /** the user of VMs whose case gives them none; absent: they have the server's */
  readonly identity?: Identity
  /** VMMs with users of their own are started by a jailer, whose capabilities stay in their bounding set; without new privileges they are of no use there. */
  readonly hasJailer?: boolean
  /** whether the network devices of guests are real ones; their image has /bin/busybox then */
  readonly hasNetwork?: boolean
}

type Identity = NonNullable<VmSpec['identity']>

/** A specification with a new folder; what runs there at the end of the test is ended, and the folder removed. */
export async function makeSpec (t: Test, fixture: HypervisorFixture, options: { deep?: boolean, identity?: Identity } = {}): Promise<VmSpec> {
  const top = await mkdtemp(join(tmpdir(), 'berth-vm-'))
  // The VMM's own user passes through, as it does through a server's data folder.
  await chmod(top, 0o711)
  t.teardown(async () => {
    if (!t.passing()) console.error(await evidenceOfVm(directory, 'of the driver'))
    await rm(top, { recursive: true, force: true })
  })
  const directory = join(top, ...options.deep === true ? ['with a space, and a comma', 'd'.repeat(120)] : ['vm'])
  await mkdir(directory, { recursive: true, mode: 0o711 })
  const file = (name: string): string => join(directory, name)
  const files = { vmm: file('vmm.log'), output: file('output.log'), report: file('report') }
  const machine = await fixture.makeMachine(directory)
  const { identity = fixture.identity } = options
  const owned = [...Object.values(files), ...machine.disks.filter((disk) => !disk.readonly).map((disk) => disk.path)]
  for (const path of owned) {
    await writeFile(path, '', { flag: 'a', mode: 0o600 })
    if (identity !== undefined) await chown(path, identity.uid, identity.gid)
  }
  return { id: 'conformance', directory, files, ...machine, ...identity === undefined ? {} : { identity } }
}

/** Launches a VM that the end of the test ends. */
export async function launch (t: Test, driver: HypervisorDriver, spec: VmSpec): Promise<Vm> {
  const vm = await driver.launch(spec)
  t.teardown(() => vm.kill())
  return vm
}

/** Opens the conversation with a guest, and waits for its first word. */
export async function converse (t: Test, fixture: HypervisorFixture, vm: Vm): Promise<GuestLink> {
  const link = fixture.guest.link(await vm.connect())
  t.teardown(() => link.close())
  await link.hello
  return link
}

export function workload (...argv: string[]): Workload {
  return { argv: [`/bin/${argv[0] ?? ''}`, ...argv.slice(1)], env: {}, cwd: '/', user: '', hostname: 'conformance', mounts: [], agent: true }
}

/**
 * Waits for a state; what is waited for is announced by the driver, so no look is missed. Resolves to the ms that it took, without those
 * in which this process, which watches, got no processor: a promise of the driver's times is one for a host that has some.
 */
export async function reaches (vm: Vm, status: VmStatus): Promise<number> {
  const elapsed = startClock()
  if (vm.state.status !== status) {
    await new Promise<void>((resolve, reject) => {
      const instead = (): Error => new Error(`${vm.state.status} and not ${status} after ${Math.round(elapsed())} ms`)
      const timer = setTimeout(() => reject(instead()), PATIENCE_MS)
      const hear = (state: VmState): void => {
        if (state.status !== status && state.status !== 'gone') return
        clearTimeout(timer)
        if (state.status === status) resolve()
        else reject(instead())
      }
      hear(vm.state)
      vm.onState(hear)
    })
  }
  return elapsed()
}

const BEAT_MS = 20

/** A clock of this process: ms since the call, without the time by which its beats were late. */
export function startClock (): () => number {
  const start = performance.now()
  let last = start
  let lostMs = 0
  const beat = (): void => {
    const now = performance.now()
    lostMs += Math.max(0, now - last - BEAT_MS)
    last = now
  }
  const timer = setInterval(beat, BEAT_MS)
  timer.unref()
  return () => {
    clearInterval(timer)
    beat()
    return last - start - lostMs
  }
}

/** Names of everything in a VM's folder, whatever the depth. */
export async function contents (directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).sort()
}
