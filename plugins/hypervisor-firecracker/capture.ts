// Saves a running VM as a memory image, and lets it pause and go on around that.
import { constants } from 'node:fs'
import { chown, copyFile, lstat, open, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { copySparse } from '../../core/fs/sparse-copy.ts'
import type { CaptureFiles, MemoryImage, VmHandle, VmImaging, VmState } from '../../core/library/hypervisor.ts'
import { CaptureFailed } from '../../core/library/vmm/errors.ts'
import type { ImageFacts } from '../../core/library/vmm/handle.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { CAPTURED, IMAGE_VERSION } from './names.ts'

export interface CaptureOptions {
  readonly vm: { refresh (): Promise<void> }
  readonly handle: VmHandle
  readonly facts: ImageFacts
  readonly folder: RunFolder
  readonly commands: HostCommands
  readonly slow: (method: 'PUT' | 'PATCH', path: string, body: object) => Promise<void>
  readonly ask: () => Promise<VmState | undefined>
}

/** The `imaging` facet of a VM. */
export function createImaging (options: CaptureOptions): VmImaging {
  const { vm, slow, ask } = options
  let busy = false

  async function setRunning (state: 'Paused' | 'Resumed'): Promise<void> {
    const wanted = state === 'Paused' ? 'paused' : 'running'
    if ((await ask())?.status !== wanted) await slow('PATCH', '/vm', { state })
    await vm.refresh()
  }

  async function captureNow (files: CaptureFiles, signal: AbortSignal | undefined): Promise<MemoryImage> {
    const wasRunning = (await ask())?.status === 'running'
    try {
      await setRunning('Paused')
      const image = await save(options, files, signal)
      await vm.refresh()
      return image
    } catch (error) {
      if (wasRunning) await setRunning('Resumed').catch((failure: unknown) => { throw new AggregateError([error, failure], 'the VM could be neither captured nor resumed') })
      throw signal?.aborted === true ? signal.reason : error
    }
  }

  return {
    // Firecracker maps memory privately: what the guest writes is in no file.
    memoryFile: undefined,
    pause: () => setRunning('Paused'),
    resume: () => setRunning('Resumed'),
    async capture (files, signal) {
      signal?.throwIfAborted()
      if (busy) throw CaptureFailed('it is being captured already')
      busy = true
      try {
        return await captureNow(files, signal)
      } finally {
        busy = false
      }
    }
  }
}

/** Firecracker writes both files into the run folder, where it may; then they become the server's. */
async function save ({ handle, facts, folder, commands, slow }: CaptureOptions, { statePath, memoryPath }: CaptureFiles, signal: AbortSignal | undefined): Promise<MemoryImage> {
  if (memoryPath === undefined) throw CaptureFailed('its memory is in no file, and no path for one was given')
  for (const path of [statePath, memoryPath]) await mustNotExist(path)
  const state = join(folder.path, CAPTURED.state)
  const memory = join(folder.path, CAPTURED.memory)
  const made: string[] = []
  try {
    // What a crash of the server has left: Firecracker would write over it.
    for (const path of [state, memory]) await rm(path, { force: true })
    await slow('PUT', '/snapshot/create', { snapshot_type: 'Full', snapshot_path: CAPTURED.state, mem_file_path: CAPTURED.memory })
    signal?.throwIfAborted()
    made.push(statePath)
    const stateBytes = await takeState(state, statePath)
    made.push(memoryPath)
    await takeMemory(commands, memory, memoryPath)
    signal?.throwIfAborted()
    const { key, shape, vcpus, memoryBytes } = facts
    const memoryStoredBytes = (await stat(memoryPath)).blocks * 512
    return { driver: handle.driver, version: IMAGE_VERSION, vmmVersion: handle.vmmVersion, key, shape, vcpus, memoryBytes, stateBytes, memoryStoredBytes, capturedAt: new Date().toISOString() }
  } catch (error) {
    for (const path of made) await rm(path, { force: true })
    throw error
  } finally {
    for (const path of [state, memory]) await rm(path, { force: true })
  }
}

async function mustNotExist (path: string): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  if (found !== undefined) throw Object.assign(new Error(`${path} exists`), { code: 'EEXIST' })
}

/** A copy, so that a VMM in a guest's hands that still has the file open changes nothing that a VM will be restored from. Returns its bytes. */
async function takeState (from: string, to: string): Promise<number> {
  const handle = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW)
  try {
    if (!(await handle.stat()).isFile()) throw CaptureFailed('Firecracker has left no file for its state')
    await copyFile(`/proc/self/fd/${handle.fd}`, to, constants.COPYFILE_EXCL)
  } finally {
    await handle.close()
  }
  return (await stat(to)).size
}

/** Firecracker writes all memory: blocks of zeros become holes. */
async function takeMemory (commands: HostCommands, from: string, to: string): Promise<void> {
  const found = await lstat(from)
  if (!found.isFile() || found.nlink !== 1) throw CaptureFailed('Firecracker has left no file for its memory')
  try {
    await rename(from, to)
  } catch (error) {
    if (!hasCode(error, 'EXDEV')) throw error
    await copySparse(commands, from, to, { dropZeros: true })
    return
  }
  if (process.getuid?.() === 0) await chown(to, 0, process.getgid?.() ?? 0)
  await commands.run('fallocate', ['--dig-holes', to], { timeoutMs: 600_000 })
}
