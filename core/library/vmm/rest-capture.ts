// Saves a running VM of a VMM with a REST API as a memory image, and pauses and resumes it. The VMM writes the files into its run folder, where it may write; then the server takes them over.
import { constants } from 'node:fs'
import { chown, lstat, open, rename, rm, stat, writeFile, type FileHandle } from 'node:fs/promises'
import type { HostCommands } from '../../contracts/services.ts'
import { hasCode } from '../../errors/system-code.ts'
import { copySparse } from '../../fs/sparse-copy.ts'
import { OneAtATime } from '../../jobs/one-at-a-time.ts'
import type { CaptureFiles, MemoryImage, VmHandle, VmImaging, VmState } from '../hypervisor.ts'
import { CaptureFailed } from './errors.ts'
import { imageFactsOf } from './handle.ts'
import { createImaging } from './imaging.ts'
import type { RestVm } from './rest-vm.ts'
import { readState } from './state-file.ts'

/** The steps that a driver implements. */
export interface RestCapture {
  /** version of its memory images */
  readonly imageVersion: number
  /** Asks the VMM to pause the guest or to resume it. */
  readonly set: (wanted: 'paused' | 'running') => Promise<void>
  /** Removes the VMM's files, and those that a crash of the server has left. */
  readonly clear: () => Promise<void>
  /** Makes the VMM write its files; none exist yet. */
  readonly write: () => Promise<void>
  /** Makes the state file, which does not exist, from the VMM's. It is a copy: a VMM that a guest controls may still have its own file open, and must not change a file that a VM will be restored from. */
  readonly takeState: (to: string) => Promise<void>
  /** where the VMM writes the memory */
  readonly memory: string
}

export interface RestCaptureOptions {
  readonly vm: Pick<RestVm, 'refresh'>
  readonly handle: VmHandle
  readonly commands: HostCommands
  /** Asks for the VM's state, and waits longer for it than a heartbeat does. */
  readonly ask: () => Promise<VmState | undefined>
}

/** The `imaging` facet of a VM. */
export function createRestImaging (options: RestCaptureOptions, how: RestCapture): VmImaging {
  const { vm, ask } = options

  // A VMM refuses to pause what another call has paused since it was asked.
  const turns = new OneAtATime()
  const set = (wanted: 'paused' | 'running'): Promise<void> => turns.run(async () => {
    if ((await ask())?.status !== wanted) await how.set(wanted)
    await vm.refresh(ask)
  })

  return createImaging({
    // Memory is private to the VMM: what the guest writes is in no file.
    memoryFile: undefined,
    status: async () => (await ask())?.status,
    pause: () => set('paused'),
    async resume () {
      await set('running')
      // After a server that was killed during a capture these may be as large as the guest's memory. What is not removed goes before the next capture, or with the VM's folder.
      await how.clear().catch(() => {})
    },
    async save (_before, files, signal) {
      await set('paused')
      return await save(options, how, files, signal)
    }
  })
}

async function save ({ handle, commands }: RestCaptureOptions, how: RestCapture, { statePath, memoryPath }: CaptureFiles, signal: AbortSignal | undefined): Promise<MemoryImage> {
  if (memoryPath === undefined) throw CaptureFailed('its memory is in no file, and no path for one was given')
  for (const path of [statePath, memoryPath]) await mustNotExist(path)
  const made: string[] = []
  try {
    await how.clear()
    await how.write()
    signal?.throwIfAborted()
    made.push(statePath)
    await how.takeState(statePath)
    made.push(memoryPath)
    await takeMemory(commands, how.memory, memoryPath)
    signal?.throwIfAborted()
    const memoryStoredBytes = (await stat(memoryPath)).blocks * 512
    const { driver, vmmVersion } = handle
    const image = { driver, version: how.imageVersion, vmmVersion, ...imageFactsOf(handle), stateBytes: (await stat(statePath)).size, memoryStoredBytes, capturedAt: new Date().toISOString() }
    await how.clear()
    return image
  } catch (error) {
    for (const path of made) await rm(path, { force: true })
    // What it does not remove goes before the next capture, or with the VM's folder.
    await how.clear().catch(() => {})
    throw error
  }
}

async function mustNotExist (path: string): Promise<void> {
  const found = await lstat(path).catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return undefined
    throw error
  })
  if (found !== undefined) throw Object.assign(new Error(`${path} exists`), { code: 'EEXIST' })
}

/** Opens a file of a VMM that a guest may control: no link is followed. */
async function openWritten (path: string): Promise<FileHandle> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  if ((await handle.stat()).isFile()) return handle
  await handle.close()
  throw CaptureFailed('the VMM has left no file for its state')
}

/** `RestCapture.takeState` where the VMM's own file is the state. */
export async function copyWritten (from: string, to: string): Promise<void> {
  await writeFile(to, await readWritten(from), { flag: 'wx', mode: 0o600 })
}

/** The state in a file of the VMM's. */
export async function readWritten (path: string): Promise<Buffer> {
  const handle = await openWritten(path)
  try {
    return await readState(handle)
  } finally {
    await handle.close()
  }
}

/** A VMM may write all memory, zeros included: blocks of zeros become holes. */
async function takeMemory (commands: HostCommands, from: string, to: string): Promise<void> {
  await checkMemory(from)
  try {
    await rename(from, to)
  } catch (error) {
    if (!hasCode(error, 'EXDEV')) throw error
    const handle = await openWritten(from)
    try {
      await copySparse(commands, `/proc/${process.pid}/fd/${handle.fd}`, to, { dropZeros: true })
    } finally {
      await handle.close()
    }
    return
  }
  // Once more where the VMM can put nothing in its place: what follows is done to what a link leads to.
  await checkMemory(to)
  if (process.getuid?.() === 0) await chown(to, 0, process.getgid?.() ?? 0)
  await commands.run('fallocate', ['--dig-holes', to], { timeoutMs: 600_000 })
}

async function checkMemory (path: string): Promise<void> {
  const found = await lstat(path)
  if (!found.isFile() || found.nlink !== 1) throw CaptureFailed('the VMM has left no file for its memory')
}
