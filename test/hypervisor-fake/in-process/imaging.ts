// Memory images of fake VMs without a process.
import { open, rm } from 'node:fs/promises'
import type { CaptureFiles, MemoryImage, VmImaging } from '../../../core/library/hypervisor.ts'
import { CaptureFailed, VmGone } from '../../../core/library/vmm/errors.ts'
import { imageFactsOf } from '../../../plugins/hypervisor-qemu/handle.ts'
import { createUndo } from '../../../core/undo.ts'
import { imageOf } from '../image.ts'
import type { Host } from './host.ts'
import type { Machine } from './machine.ts'

export function imagingOf<M extends Machine> (host: Host<M>, vm: M): VmImaging {
  const facts = imageFactsOf(vm.handle)
  if (facts === undefined) throw new Error('a handle without the facts of images')
  const mustLive = (): void => { if (vm.state.status === 'gone') throw VmGone(vm.handle.directory) }

  const memoryBase = host.sharesMemory === true ? facts.memoryBase : undefined

  async function write ({ statePath, memoryPath, changesPath }: CaptureFiles, signal: AbortSignal | undefined): Promise<MemoryImage> {
    const isOfChanges = memoryBase !== undefined && changesPath !== undefined
    const target = facts?.memoryFile ?? (isOfChanges ? changesPath : memoryPath)
    if (facts === undefined || target === undefined) throw CaptureFailed('its memory is in no file, and no path for one was given')
    const wasRunning = vm.state.status === 'running'
    const undo = createUndo()
    try {
      vm.set({ status: 'paused' })
      undo.add(async () => { if (wasRunning && vm.state.status === 'paused') await takeStep(host, vm) })
      const file = await open(statePath, 'wx', 0o600)
      undo.add(async () => { await rm(statePath, { force: true }) })
      await file.writeFile(vm.save())
      await file.close()
      if (facts.memoryFile === undefined) {
        if (!vm.ahead.delete(target)) await (await open(target, 'wx', 0o600)).close()
        undo.add(async () => { await rm(target, { force: true }) })
      }
      await vm.saveMemory(target, facts.memoryFile !== undefined)
      vm.isCaptured = true
      await host.step('captured', vm, signal)
      signal?.throwIfAborted()
      const image = await imageOf(vm.handle, facts, { statePath, memoryPath: target })
      undo.drop()
      return isOfChanges ? { ...image, changes: true } : image
    } catch (error) {
      await undo.run()
      throw error
    }
  }

  return {
    memoryFile: facts.memoryFile,
    ...memoryBase === undefined ? {} : { memoryBase },
    ...facts.memoryFile === undefined ? {
      copyAhead: async (memoryPath: string) => {
        await host.step('copy-ahead', vm)
        mustLive()
        const file = await open(memoryPath, 'wx', 0o600)
        await file.writeFile('of no one moment')
        await file.close()
        vm.ahead.add(memoryPath)
        await host.step('copied-ahead', vm)
      }
    } : {},
    pause: async () => {
      await host.step('pause', vm)
      mustLive()
      vm.set({ status: 'paused' })
      await host.step('paused', vm)
    },
    resume: async () => {
      await host.step('resume', vm)
      await takeStep(host, vm)
    },
    capture: async (files, signal) => {
      signal?.throwIfAborted()
      await host.step('capture', vm)
      mustLive()
      return await write(files, signal)
    }
  }
}

/** The guest's processors run. */
export async function takeStep<M extends Machine> (host: Host<M>, vm: M): Promise<void> {
  if (vm.state.status === 'gone') throw VmGone(vm.handle.directory)
  host.runs?.(vm)
  if (vm.isCaptured) await vm.goOn()
  vm.isCaptured = false
  vm.set({ status: 'running' })
}
