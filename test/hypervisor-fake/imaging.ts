// Memory images of fake VMs that are processes: two small files that behave like real ones.
import { open, readFile, rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CaptureFiles, MemoryImage, VmHandle, VmImaging } from '../../core/library/hypervisor.ts'
import { CaptureFailed, RestoreFailed } from '../../core/library/vmm/errors.ts'
import { imageFactsOf, type ImageFacts } from '../../plugins/hypervisor-qemu/handle.ts'
import type { FakeControl } from './control.ts'
import { checkFits, imageOf, readMemory, writeMemory, type ImageUse } from './image.ts'
import type { FakeScript, SavedGuest } from './script.ts'

/** Throws what a real driver would; returns the guest that the files hold. */
export async function loadImage (use: ImageUse): Promise<SavedGuest> {
  return parseSaved(await readFile(use.statePath, 'utf8'), await readMemory(await checkFits(use)))
}

/** The guest that two files hold. */
export function parseSaved (state: string, memory: string): SavedGuest {
  try {
    return { ...JSON.parse(state), memory }
  } catch (error) {
    if (error instanceof SyntaxError) throw RestoreFailed('the state makes no sense')
    throw error
  }
}

interface Facet {
  readonly handle: VmHandle
  readonly control: () => FakeControl
  readonly script: () => FakeScript | Promise<FakeScript>
  /** Makes the VM's state what the VMM says now. */
  readonly refresh: () => Promise<void>
}

/** A fake VM's `imaging`. */
export function createFakeImaging ({ handle, control, script, refresh }: Facet): VmImaging | undefined {
  const facts = imageFactsOf(handle)
  if (facts === undefined) return undefined
  const order = async (what: 'pause' | 'resume'): Promise<void> => {
    await control().ask({ do: what })
    await refresh()
  }
  return {
    memoryFile: facts.memoryFile,
    pause: () => order('pause'),
    resume: () => order('resume'),
    async capture (files, signal) {
      signal?.throwIfAborted()
      const { status } = await control().ask({ do: 'status' })
      try {
        await order('pause')
        return await write(handle, facts, files, control(), await script(), signal)
      } catch (error) {
        if (status === 'running') await order('resume')
        throw signal?.aborted === true ? signal.reason : error
      }
    }
  }
}

async function write (handle: VmHandle, facts: ImageFacts, { statePath, memoryPath }: CaptureFiles, control: FakeControl, script: FakeScript, signal?: AbortSignal): Promise<MemoryImage> {
  const target = facts.memoryFile ?? memoryPath
  if (target === undefined) throw CaptureFailed('its memory is in no file, and no path for one was given')
  const { saved } = await control.ask({ do: 'save' })
  if (saved === undefined) throw CaptureFailed('the fake VMM saved nothing')
  const { memory, ...state } = saved
  const file = await open(statePath, 'wx', 0o600)
  try {
    await file.writeFile(JSON.stringify(state))
    if (script.captureDelayMs !== undefined) await sleep(script.captureDelayMs, undefined, signal === undefined ? {} : { signal })
    if (script.captureFailure !== undefined) throw CaptureFailed(script.captureFailure)
    await writeMemory(target, facts.memoryBytes, memory, facts.memoryFile === undefined ? 'wx' : 'r+')
  } catch (error) {
    await rm(statePath, { force: true })
    throw error
  } finally {
    await file.close()
  }
  return await imageOf(handle, facts, { statePath, memoryPath: target })
}
