// The fake driver whose VMs are objects of this process: a test's own thread plays the VMM, and can hold or fail it at each step.
import type { HypervisorDriver, Vm, VmSpec } from '../../../core/library/hypervisor.ts'
import { checkBootable, checkFits, detailsOf, keyFor } from '../image.ts'
import { lockMemory } from './files.ts'
import type { DriverStep, Host } from './host.ts'
import type { Machine } from './machine.ts'
import { takeStep } from './imaging.ts'
import { viewOf, goneView } from './view.ts'

/** Nothing is ever sent to these: the number only distinguishes VMs. */
const FIRST_PID = 4_000_000

export function createInProcessDriver<M extends Machine> (host: Host<M>): HypervisorDriver {
  const { name } = host
  return {
    name,
    features: host.features,
    probe: async () => ({ supported: true, version: host.vmmVersion, acceleration: 'tcg', reason: 'a fake runs nothing' }),
    launch: async (spec, signal) => {
      signal?.throwIfAborted()
      await host.step('launch', undefined)
      await checkBootable(host.isImaginary?.(spec.kernel.path) === true ? { ...spec, kernel: { ...spec.kernel, path: '/dev/null' } } : spec)
      const vm = await add(spec)
      return await begin(vm, 'launched', signal, async () => {
        await vm.boot()
        host.runs?.(vm)
      })
    },
    imaging: {
      keepsPaused: true,
      refusal: async () => host.imagingRefusal,
      privateMemory: { refusal: async () => host.sharesMemory === true ? undefined : 'its VMs share no memory', isProven: async () => host.sharesMemory === true },
      key: async (spec) => keyFor(spec, host.vmmVersion, host.diskLimits),
      restore: async (spec, image, statePath, { signal, beforeRun, otherDisks = [] } = {}) => {
        signal?.throwIfAborted()
        await host.step('restore', undefined)
        const memoryPath = await checkFits({ driver: name, version: host.vmmVersion, spec, image, statePath, limits: host.diskLimits ?? 'changeable' }, host.hasWholeMemory)
        const vm = await add(spec, image)
        return await begin(vm, 'restored', signal, async () => {
          vm.set({ status: 'paused' })
          vm.isCaptured = true
          vm.otherDisks = otherDisks
          vm.restoredFrom = { image, ...await vm.load(statePath, spec.memory?.changes ?? memoryPath) }
          await beforeRun?.(vm.handle)
          await host.step('loaded', vm)
          await takeStep(host, vm)
        })
      }
    },
    attach: async (handle) => {
      if (host.attachError !== undefined) throw host.attachError
      const vm = host.vms.find((known) => known.handle.pid === handle.pid && known.handle.bootId === handle.bootId && known.handle.startTicks === handle.startTicks)
      return vm === undefined ? goneView(handle) : viewOf(host, vm)
    }
  }

  async function add (spec: VmSpec, image?: Parameters<typeof detailsOf>[2]): Promise<M> {
    const memoryInode = await lockMemory(host, spec)
    const pid = FIRST_PID + host.vms.length
    const vm = host.makeVm(spec, {
      driver: name, version: 1, vmmVersion: host.vmmVersion, pid, startTicks: '0', bootId: 'in-process', directory: spec.directory, details: detailsOf(spec, host.vmmVersion, image, host.diskLimits)
    })
    vm.memoryInode = memoryInode
    host.vms.push(vm)
    return vm
  }

  /** A VM that does not come about leaves nothing. */
  async function begin (vm: M, done: DriverStep, signal: AbortSignal | undefined, start: () => Promise<void>): Promise<Vm> {
    try {
      await start()
      await host.step(done, vm)
      signal?.throwIfAborted()
      return viewOf(host, vm)
    } catch (error) {
      vm.set({ status: 'gone' })
      throw error
    }
  }
}
