// A fake VM without a process as one server sees it.
import { chown, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Vm, VmBalloon, VmDiskChanges, VmState } from '../../../core/library/hypervisor.ts'
import { SpecInvalid, VmGone } from '../../../core/library/vmm/errors.ts'
import { checkOpens, checkPlugs } from './files.ts'
import type { Host } from './host.ts'
import { imagingOf } from './imaging.ts'
import type { Machine } from './machine.ts'

export function viewOf<M extends Machine> (host: Host<M>, vm: M): Vm {
  const server = host.servers
  let last: VmState | undefined
  const listeners = new Set<(state: VmState) => void>()
  const mustLive = (): void => { if (vm.state.status === 'gone') throw VmGone(vm.handle.directory) }
  const hear = (state: VmState): void => { for (const listener of [...listeners]) listener(state) }
  vm.bus.on('state', hear)

  return {
    handle: vm.handle,
    get state () { return last ?? vm.state },
    onState (listener) {
      listeners.add(listener)
      return () => { listeners.delete(listener) }
    },
    connect: async () => {
      mustLive()
      return vm.connect(server)
    },
    ...host.makesImages ? { imaging: imagingOf(host, vm) } : {},
    kill: async () => {
      await host.step('kill', vm)
      vm.set({ status: 'gone' })
      await host.step('killed', vm)
    },
    wait: async () => {
      if (vm.state.status === 'gone') return
      await new Promise<void>((resolve) => {
        vm.bus.on('state', (state: VmState) => { if (state.status === 'gone') resolve() })
      })
    },
    ...host.replacesDisks ? { replaceDisk: async (id: string, path: string) => { await replaceDisk(id, path) } } : {},
    trackDisk,
    plugDisk: async (disk) => {
      await host.step('plug-disk', vm)
      mustLive()
      if (vm.plugged.has(disk.id)) return
      await checkPlugs(host, vm, disk)
      vm.disks.set(disk.id, disk.path)
      vm.plugged.set(disk.id, disk)
      await host.step('disk-plugged', vm)
    },
    unplugDisk: async (id) => {
      await host.step('unplug-disk', vm)
      mustLive()
      vm.checkReleased(id)
      if (vm.plugged.delete(id)) vm.disks.delete(id)
      await host.step('disk-unplugged', vm)
    },
    ...vm.spec.balloon === true && host.hasBalloons ? { balloon: balloon() } : {},
    ...host.diskLimits === 'fixed' ? {} : { limitDisks: async (bytesPerSecond: number | undefined) => { vm.diskLimit = bytesPerSecond } },
    rotate: async (file, path) => {
      await host.step('rotate', vm)
      mustLive()
      await (await open(path, 'a', 0o600)).close()
      const { identity } = vm.spec
      if (identity !== undefined && process.getuid?.() === 0) await chown(path, identity.uid, identity.gid)
      vm.files[file] = path
      vm.rotations.push(join(file, path))
    },
    release: () => {
      vm.released++
      last = vm.state
      vm.bus.off('state', hear)
      listeners.clear()
    }
  }

  async function replaceDisk (id: string, path: string): Promise<void> {
    await host.step('replace', vm)
    mustLive()
    if (!vm.disks.has(id)) throw SpecInvalid(`it has no disk "${id}"`)
    await checkOpens(host, vm.spec, path)
    vm.disks.set(id, path)
    await host.step('replaced', vm)
  }

  async function trackDisk (id: string): Promise<VmDiskChanges> {
    await host.step('track', vm)
    mustLive()
    if (!vm.disks.has(id)) throw SpecInvalid(`it has no disk "${id}"`)
    const record = Symbol(id)
    vm.records.set(id, record)
    vm.tracked.add(id)
    await host.step('tracked', vm)
    return {
      ranges: async () => {
        await host.step('changes', vm)
        if (vm.records.get(id) !== record) throw new Error(`the record of the disk ${id} has ended`)
        return vm.changes
      },
      end: async () => {
        await host.step('untrack', vm)
        if (vm.records.get(id) !== record) return
        vm.records.delete(id)
        vm.tracked.delete(id)
      }
    }
  }

  function balloon (): VmBalloon {
    return {
      wholeBytes: vm.spec.memoryBytes,
      bytes: async () => vm.memory,
      aim: async (bytes) => {
        await host.step('aim', vm)
        vm.aims.push(bytes)
        if (!vm.stubborn) vm.memory = bytes
      }
    }
  }
}

/** What became of a VM that nobody knows any more. */
export function goneView (handle: Vm['handle']): Vm {
  const refuse = async (): Promise<never> => { throw VmGone(handle.directory) }
  return { handle, state: { status: 'gone' }, onState: () => () => {}, connect: refuse, kill: async () => {}, wait: async () => {}, rotate: refuse, release: () => {} }
}
