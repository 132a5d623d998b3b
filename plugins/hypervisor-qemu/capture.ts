// Saves a running VM as a memory image; pauses it for that and resumes it.
import { chown, rm, stat } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import type { CaptureFiles, MemoryImage, VmHandle, VmImaging } from '../../core/library/hypervisor.ts'
import { copyChanged } from '../../core/library/vmm/held-memory.ts'
import { listenUnix } from '../../core/process/unix-socket.ts'
import { memoryFileBytes } from './args.ts'
import { isRecord } from '../../core/json/is-record.ts'
import { type QmpClient } from './client.ts'
import { QmpTimeout } from './errors.ts'
import { CaptureFailed } from '../../core/library/vmm/errors.ts'
import { createImaging } from '../../core/library/vmm/imaging.ts'
import { joinChanges, writeChanges } from '../../core/library/vmm/private-memory.ts'
import { saveDevices } from './device-state.ts'
import type { ImageFacts } from './handle.ts'
import { writeImage, type Written } from './image-writer.ts'
import { prepareMigration, watchMigration } from './migration.ts'
import { CAPTURE_SOCKET } from './run-folder.ts'
import { IMAGE_VERSION } from './shape.ts'

/**
 * Changes are written anew at each capture, and read at each restore. A VM that has changed more than this has little left in common with others, and goes on with a file of its own, whose captures take as long
 * for any size.
 */
const MOST_CHANGES_BYTES = 128 * 2 ** 20

export interface CaptureOptions {
  readonly handle: VmHandle
  readonly facts: ImageFacts
  readonly commands: HostCommands
  /** most time for one step, `ms` */
  readonly timeoutMs: number
  /** the control connection; throws when there is none */
  readonly control: () => QmpClient
  /** Updates the VM's state from QEMU. */
  readonly refresh: (timeoutMs: number) => Promise<void>
}

/** The `imaging` facet of a VM. */
export function createQemuImaging (options: CaptureOptions): VmImaging {
  const { facts, timeoutMs, control, refresh } = options

  async function setRunning (command: 'stop' | 'cont'): Promise<void> {
    // `stop` also writes the guest's finished disk writes to the host's disk.
    await control().execute(command, {}, timeoutMs)
    await refresh(timeoutMs)
  }

  return createImaging({
    memoryFile: facts.memoryFile,
    ...facts.memoryBase === undefined ? {} : { memoryBase: facts.memoryBase },
    ...copiesAhead(options),
    status: () => statusOf(control(), timeoutMs),
    pause: () => setRunning('stop'),
    resume: () => setRunning('cont'),
    async save (before, files, signal) {
      // QEMU saves a VM only once in a given state: before the second time the guest must have run.
      if (before === 'postmigrate') await setRunning('cont')
      await setRunning('stop')
      const written = await save(options, files, signal)
      await refresh(timeoutMs)
      return imageOf(options, written)
    }
  })
}

async function statusOf (qmp: QmpClient, timeoutMs: number): Promise<unknown> {
  const answer = await qmp.execute('query-status', {}, timeoutMs)
  return isRecord(answer) ? answer['status'] : undefined
}

function copiesAhead (options: CaptureOptions): Pick<VmImaging, 'copyAhead'> {
  const { facts: { memoryBase, holdsMemory }, commands } = options
  if (holdsMemory === true) return { copyAhead: async (to, signal) => { await copyHeld(options, to, signal) } }
  // What the guest has changed comes with the capture.
  return memoryBase === undefined ? {} : { copyAhead: async (to, signal) => { await copyChanged(commands, { from: memoryBase, bytes: memoryFileBytes(options.facts), to }, { timeoutMs: options.timeoutMs, ...signal === undefined ? {} : { signal } }) } }
}

async function save (options: CaptureOptions, files: CaptureFiles, signal: AbortSignal | undefined): Promise<Written> {
  const { statePath, memoryPath } = files
  const { facts: { memoryFile, memoryBase, holdsMemory = false } } = options
  if (memoryBase !== undefined) return await savePrivate(options, memoryBase, files, signal)
  if (memoryFile !== undefined) return { ...await saveState(options, { statePath }, signal), memoryStoredBytes: await storedBytes(memoryFile) }
  if (memoryPath === undefined) throw CaptureFailed('its memory is in no file, and no path for one was given')
  if (!holdsMemory) return await saveState(options, { statePath, memoryPath }, signal)
  const written = await saveState(options, { statePath }, signal)
  try {
    // Not earlier: until now the memory need not match the state.
    await copyHeld(options, memoryPath, signal)
    return { ...written, memoryStoredBytes: await storedBytes(memoryPath) }
  } catch (error) {
    for (const path of [statePath, memoryPath]) await rm(path, { force: true })
    throw error
  }
}

/** Neither the devices nor what has changed passes QEMU's migration, which would read all of the memory. */
async function savePrivate ({ handle, facts, commands, timeoutMs, control }: CaptureOptions, base: string, { statePath, memoryPath, changesPath }: CaptureFiles, signal: AbortSignal | undefined): Promise<Written> {
  const changes = changesPath ?? (memoryPath === undefined ? undefined : `${memoryPath}.changes`)
  if (changes === undefined) throw CaptureFailed('its memory is in no file of its own, and no path for one was given')
  const mapped = { pid: handle.pid, base, bytes: memoryFileBytes(facts) }
  const within = { timeoutMs, ...signal === undefined ? {} : { signal } }
  const stateBytes = await saveDevices(control(), handle, statePath, timeoutMs)
  const made = [statePath, changes]
  try {
    await writeChanges(commands, mapped, changes, within)
    const isEnough = changesPath !== undefined && (await stat(changesPath)).size <= MOST_CHANGES_BYTES
    if (memoryPath === undefined || isEnough) return { stateBytes, memoryStoredBytes: await storedBytes(changes), changes: true }
    made.push(memoryPath)
    await joinChanges(commands, { ...mapped, changes }, memoryPath, within)
    await rm(changes)
    return { stateBytes, memoryStoredBytes: await storedBytes(memoryPath) }
  } catch (error) {
    for (const path of made) await rm(path, { force: true })
    throw error
  }
}

async function storedBytes (path: string): Promise<number> {
  return (await stat(path)).blocks * 512
}

async function copyHeld ({ handle, facts, commands, timeoutMs }: CaptureOptions, to: string, signal: AbortSignal | undefined): Promise<void> {
  await copyChanged(commands, { from: handle.pid, bytes: memoryFileBytes(facts), to }, { timeoutMs, ...signal === undefined ? {} : { signal } })
}

/** Lets QEMU send the state of the paused VM to a socket, and writes it to the files. */
async function saveState ({ handle, facts, timeoutMs, control }: CaptureOptions, files: CaptureFiles, signal: AbortSignal | undefined): Promise<Written> {
  const qmp = control()
  await prepareMigration(qmp)
  const receiver = await receive(handle)
  const migration = watchMigration(qmp, timeoutMs, (why) => CaptureFailed(why))
  const abort = (): void => receiver.close()
  // Also of one that says it has sent all and does not end its stream, or sends for ever.
  const timer = setTimeout(() => { receiver.close(QmpTimeout('its migration', timeoutMs)) }, timeoutMs)
  signal?.addEventListener('abort', abort, { once: true })
  try {
    const target = { ...files, memoryFileBytes: memoryFileBytes(facts), hotplugBytes: facts.hotplugBytes ?? 0 }
    const writing = receiver.socket.then((socket) => writeImage(socket, target))
    // When one side ends, so does the other. Both are waited for: a QEMU that is still saving must not be told to go on.
    for (const side of [writing, migration.done]) side.catch(() => receiver.close())
    await qmp.execute('migrate', { uri: `unix:../${CAPTURE_SOCKET}` }, timeoutMs)
    return await bothOf(writing, migration.done)
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', abort)
    migration.stop()
    receiver.close()
  }
}

async function bothOf (writing: Promise<Written>, sending: Promise<void>): Promise<Written> {
  const [written, sent] = await Promise.allSettled([writing, sending])
  // A full disk here breaks QEMU's stream, and a failure of QEMU ends it early: the cause is the side whose error is about more than the stream.
  if (written.status === 'rejected' && !CaptureFailed.is(written.reason)) throw written.reason
  if (sent.status === 'rejected') throw sent.reason
  if (written.status === 'rejected') throw written.reason
  return written.value
}

interface Receiver {
  readonly socket: Promise<Socket>
  /** @param why what then fails who reads the stream */
  close (why?: Error): void
}

/** A socket for this VMM alone, in the VM's folder, which belongs to the server: nobody can replace it by another file. */
async function receive (handle: VmHandle): Promise<Receiver> {
  const path = join(handle.directory, CAPTURE_SOCKET)
  // left by a crashed server
  await rm(path, { force: true })
  const server: Server = createServer()
  server.maxConnections = 1
  const opened: Socket[] = []
  const socket = new Promise<Socket>((resolve, reject) => {
    server.once('connection', (connection) => {
      // Who reads it hears of its errors; until somebody does, they end nobody.
      opened.push(connection.on('error', () => {}))
      resolve(connection)
    })
    server.once('error', reject)
    server.once('close', () => reject(CaptureFailed('QEMU did not connect')))
  })
  socket.catch(() => {})
  await listenUnix(server, handle.directory, CAPTURE_SOCKET)
  const { uid, gid } = await stat(`/proc/${handle.pid}`)
  if (process.getuid?.() === 0) await chown(path, uid, gid)
  return {
    socket,
    close (why) {
      server.close()
      for (const connection of opened) connection.destroy(why)
    }
  }
}

function imageOf ({ handle, facts }: CaptureOptions, written: Written): MemoryImage {
  const { key, shape, vcpus, memoryBytes } = facts
  return { driver: handle.driver, version: IMAGE_VERSION, vmmVersion: handle.vmmVersion, key, shape, vcpus, memoryBytes, ...written, capturedAt: new Date().toISOString() }
}
