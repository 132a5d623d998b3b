// One running VM: carries out its owner's calls, and asks for its state. It belongs to no server: any server may take it over by its handle.
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Vm, VmBalloon, VmDisk, VmDiskChanges, VmHandle, VmImaging, VmState } from '../../core/library/hypervisor.ts'
import type { HostCommands, ProcessIdentity } from '../../core/contracts/services.ts'
import { isAlive } from '../../core/process/identity.ts'
import { connectUnix } from '../../core/process/unix-socket.ts'
import { AGENT_SOCKET, QMP_SOCKET } from './args.ts'
import { createLocks } from '../../core/jobs/locks.ts'
import { createBalloon } from './balloon.ts'
import { createQemuImaging } from './capture.ts'
import { isRecord } from '../../core/json/is-record.ts'
import { openQmp, type QmpClient } from './client.ts'
import { DiskChanges } from './disk-changes.ts'
import { endProcess } from '../../core/process/end.ts'
import { limitDisks, plugDisk, replaceDisk, unplugDisk } from './disks.ts'
import { VmGone } from '../../core/library/vmm/errors.ts'
import { QmpClosed, QmpRefused } from './errors.ts'
import { balloonBytesOf, identityOf, imageFactsOf } from './handle.ts'
import { prepareLogFile } from '../../core/library/vmm/log-file.ts'
import { VmWatch, type Heartbeat } from '../../core/library/vmm/vm-watch.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { folderOf } from './run-folder.ts'
import { STOPPED_BY_DISK, stateOfAnswer } from './status.ts'

const COMMAND_TIMEOUT_MS = 5000

export interface VmOptions {
  readonly heartbeat: Heartbeat
  /** most time for one step of making or loading a memory image, `ms` */
  readonly imageTimeoutMs: number
  readonly commands: HostCommands
  /** is called with exceptions of the VM's listeners */
  readonly onError: (error: unknown) => void
}

export class QemuVm implements Vm {
  readonly handle: VmHandle
  readonly imaging?: VmImaging
  readonly balloon?: VmBalloon
  readonly #identity: ProcessIdentity
  readonly #options: VmOptions
  readonly #folder: RunFolder
  readonly #watch: VmWatch
  #qmp: QmpClient | undefined
  /** when it was last told to go on after a disk could not be written */
  #retriedAt = -Infinity
  #agent: Socket | undefined
  #agentTurn = 0
  readonly #diskChanges: DiskChanges
  /** of disks, by id */
  readonly #locks = createLocks()

  /** @param qmp its control connection, when that is open already */
  constructor (handle: VmHandle, state: VmState, options: VmOptions, qmp?: QmpClient) {
    this.handle = handle
    this.#identity = identityOf(handle, handle.driver)
    this.#options = options
    this.#folder = folderOf(handle.directory)
    const { heartbeat, onError } = options
    this.#watch = new VmWatch({ identity: this.#identity, folder: this.#folder, heartbeat, onError, look: () => this.#look(), close: () => { this.#qmp?.close() }, isSilentAtOnce: true }, state)
    this.#diskChanges = new DiskChanges(this.#folder.path, options.imageTimeoutMs)
    const facts = imageFactsOf(handle)
    if (facts !== undefined) {
      const control = (): QmpClient => this.#control()
      this.imaging = createQemuImaging({ handle, facts, commands: options.commands, timeoutMs: options.imageTimeoutMs, control, refresh: (timeoutMs) => this.#refresh(timeoutMs) })
    }
    const balloonBytes = balloonBytesOf(handle)
    if (balloonBytes !== undefined) this.balloon = createBalloon(balloonBytes, () => this.#control())
    if (qmp !== undefined) this.#use(qmp)
    this.#watch.start()
  }

  get state (): VmState { return this.#watch.state }

  known (): Promise<void> { return this.#watch.known() }

  onState (listener: (state: VmState) => void): () => void { return this.#watch.onState(listener) }

  /** Asks at once instead of at the next heartbeat. */
  notice (): void { this.#watch.notice() }

  async connect (): Promise<Duplex> {
    const turn = ++this.#agentTurn
    this.#agent?.destroy()
    if (this.state.status === 'gone') throw VmGone(this.handle.directory)
    const socket = await connectUnix(this.#folder.path, AGENT_SOCKET)
    if (turn === this.#agentTurn) this.#agent = socket
    else socket.destroy()
    return socket
  }

  async kill (): Promise<void> {
    await endProcess(this.#identity)
    this.#watch.end()
  }

  wait (): Promise<void> { return this.#watch.ended() }

  async rotate (file: 'output' | 'vmm', path: string): Promise<void> {
    this.#control()
    await prepareLogFile(path, this.handle.pid)
    // QEMU opens the new file before it closes the old one, and writes its remaining output to the new one.
    const args = { id: file, backend: { type: 'file', data: { out: path, append: true } } }
    await this.#control().execute('chardev-change', args, COMMAND_TIMEOUT_MS)
  }

  replaceDisk (id: string, path: string): Promise<void> {
    return this.#changeDisk(id, (qmp) => replaceDisk(qmp, id, path))
  }

  async limitDisks (bytesPerSecond: number | undefined): Promise<void> {
    await limitDisks(this.#control(), bytesPerSecond)
  }

  plugDisk (disk: VmDisk): Promise<void> {
    return this.#changeDisk(disk.id, (qmp) => plugDisk(qmp, disk))
  }

  unplugDisk (id: string): Promise<void> {
    return this.#changeDisk(id, (qmp) => unplugDisk(qmp, id))
  }

  /** One after the other: two concurrent changes of one disk would use the same name for their images. */
  #changeDisk (id: string, change: (qmp: QmpClient) => Promise<void>): Promise<void> {
    return this.#locks.hold(id, async () => { await change(this.#control()) })
  }

  async trackDisk (id: string): Promise<VmDiskChanges> {
    return await this.#diskChanges.track(this.#control(), id)
  }

  release (): void {
    this.#agent?.destroy()
    this.#watch.release()
  }

  #control (): QmpClient {
    if (this.#qmp === undefined) throw QmpClosed(this.state.reason ?? 'the VM has ended')
    return this.#qmp
  }

  async #refresh (timeoutMs: number): Promise<void> {
    await this.#query(this.#control(), timeoutMs)
  }

  /** Returns the pause until the next look; undefined: it gave no state that is known, which a guest that controls QEMU can bring about. */
  async #look (): Promise<number | undefined> {
    const qmp = this.#qmp ?? await this.#reconnect()
    if (qmp === undefined || !await this.#ask(qmp)) return undefined
    return this.#isRetrying() ? this.#retriedAt + this.#options.heartbeat.intervalMs - performance.now() : this.#options.heartbeat.intervalMs
  }

  /** Sends one query to QEMU, and waits for its answer as long as the connection lives. Returns whether that is a known state. */
  async #ask (qmp: QmpClient): Promise<boolean> {
    let isOpen = true
    const late = setTimeout(() => { this.#watch.setSilent(() => isOpen).catch(this.#options.onError) }, this.#options.heartbeat.deadlineMs).unref()
    try {
      const status = await this.#query(qmp)
      if (status === STOPPED_BY_DISK && !this.#isRetrying()) await this.#retry(qmp)
      return status !== undefined
    } catch (error) {
      if (QmpRefused.is(error)) return false
      if (!QmpClosed.is(error)) throw error
      this.#qmp = undefined
      return false
    } finally {
      isOpen = false
      clearTimeout(late)
    }
  }

  /** A full disk has stopped the VM. Going on repeats the failed write: that is tried once in an interval, whose end shows the result. */
  async #retry (qmp: QmpClient): Promise<void> {
    this.#retriedAt = performance.now()
    await qmp.execute('cont').catch((error: unknown) => { if (!QmpRefused.is(error)) throw error })
  }

  #isRetrying (): boolean {
    return performance.now() - this.#retriedAt < this.#options.heartbeat.intervalMs
  }

  /** Resolves with what QEMU said; undefined: that is no state of a VM. */
  async #query (qmp: QmpClient, timeoutMs?: number): Promise<string | undefined> {
    const answer = await qmp.execute('query-status', {}, timeoutMs)
    const said = isRecord(answer) && typeof answer['status'] === 'string' ? answer['status'] : undefined
    // It may be about to be stopped by the same disk: it runs again once it has kept running for an interval.
    const status = said === 'running' && this.#isRetrying() ? STOPPED_BY_DISK : said
    const state = status === undefined ? undefined : stateOfAnswer(status)
    if (state === undefined) return undefined
    // Its owner has paused it, and may let it go on at once.
    if (status !== STOPPED_BY_DISK) this.#retriedAt = -Infinity
    this.#watch.set(state)
    return status
  }

  async #reconnect (): Promise<QmpClient | undefined> {
    if (!isAlive(this.#identity)) return undefined
    try {
      const socket = await connectUnix(this.#folder.path, QMP_SOCKET)
      return this.#use(await openQmp(socket, this.#options.heartbeat.deadlineMs))
    } catch (error) {
      // Whatever the error is, the VMM cannot be reached now: that is its state, and the next check tries again.
      if (error instanceof Error) return undefined
      throw error
    }
  }

  #use (qmp: QmpClient): QmpClient {
    this.#qmp = qmp
    this.#watch.reached()
    // A VM that is told to go on, and is stopped by the next write, says both each time.
    qmp.onEvent((name) => { if ((name === 'STOP' || name === 'RESUME') && !this.#isRetrying()) this.notice() })
    qmp.closed.then(() => this.notice(), this.#options.onError)
    if (this.#watch.isReleased) qmp.close()
    return qmp
  }
}
