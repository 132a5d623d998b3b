// The conversation with one guest over one byte stream: opens channels, hands each frame to its channel, and ends with a reason.
import type { Duplex } from 'node:stream'
import type { Logger } from '../../../core/contracts/services.ts'
import { traced, type SpanOptions } from '../../../core/tracing/span.ts'
import type { ConnectOptions, ExecResult, ExecSession, ExecSpec, GuestEntry, GuestExit, GuestHello, GuestIdentity, GuestLink, GuestListener, GuestMount, GuestUpload, PathFacts, PathOptions, PutSpec, Rehearsal, SleepOptions, Workload } from '../contract.ts'
import { GuestGone, guestRefused } from '../errors.ts'
import { unlessCancelled } from './cancelled.ts'
import { Channel, refuseOn, type ChannelSpec, type OpenChannel } from './channel.ts'
import { connectTo } from './connect.ts'
import { execSession } from './exec.ts'
import { Tag } from './fields.ts'
import { encodeFrame, FrameParser, FrameType, type FrameSink } from './frames.ts'
import { guestEntries } from './get.ts'
import { Handshake } from './handshake.ts'
import { IdleMeter } from './idle-meter.ts'
import { ANSWER_MARGIN_MS, BIND_MS, DEFAULT_SLEEP_MS, MAX_PAYLOAD_BYTES, MAX_UNANSWERED, REHEARSE_MS, VOLUME_MS, WAKE_MS } from './limits.ts'
import { listenOn } from './listen.ts'
import { decodeEvent, decodeExecResult, decodeFacts, decodeHello, decodePutResult, encodeBind, encodeExec, encodeFlush, encodeMountRequest, encodePathRequest, encodePut, encodeRehearse, encodeRun, encodeShutdown, encodeSleep, encodeUnmount, encodeWake } from './messages.ts'
import { Moment } from './moment.ts'
import { Outbox } from './outbox.ts'
import { guestUpload } from './put.ts'
import { encodeTrust } from './trust.ts'
import { ProtocolViolation } from './violation.ts'

const E2BIG = 7
const EAGAIN = 11
const GUEST: SpanOptions = { kind: 'client' }

export interface LinkOptions {
  readonly log: Logger
  /** `ms` within which the guest must have answered the sync; a cold boot under emulation takes seconds */
  readonly answerTimeoutMs: number
  /** time that a guest gets on top of its own limits before it is given up; see limits.ts */
  readonly answerMarginMs?: number
}

export class StreamLink implements GuestLink, FrameSink {
  readonly hello: Promise<GuestHello>
  readonly closed: Promise<string>
  readonly #stream: Duplex
  readonly #log: Logger
  readonly #outbox: Outbox
  readonly #handshake: Handshake
  readonly #parser = new FrameParser(this)
  readonly #idle = new IdleMeter()
  readonly #channels = new Map<number, OpenChannel>()
  readonly #started: Moment<undefined>
  readonly #exited: Moment<GuestExit>
  readonly #answerTimer: NodeJS.Timeout
  readonly #answerMarginMs: number
  #phase: 'syncing' | 'greeting' | 'talking' = 'syncing'
  #lastChannel = 0
  #endReason: string | undefined
  #settleHello: { resolve (hello: GuestHello): void, reject (error: Error): void } = { resolve: () => {}, reject: () => {} }
  #settleClosed: (reason: string) => void = () => {}

  constructor (stream: Duplex, { log, answerTimeoutMs, answerMarginMs = ANSWER_MARGIN_MS }: LinkOptions) {
    this.#answerMarginMs = answerMarginMs
    this.#stream = stream
    this.#log = log
    this.hello = new Promise((resolve, reject) => { this.#settleHello = { resolve, reject } })
    // Nobody may be waiting any more when the link ends; that must not count as an unhandled rejection.
    traced('guest hello', GUEST, async () => await this.hello).catch(() => {})
    this.closed = new Promise((resolve) => { this.#settleClosed = resolve })
    this.#started = new Moment(log)
    this.#exited = new Moment(log)
    this.#outbox = new Outbox(stream, (reason) => { this.#end(reason) })
    this.#handshake = new Handshake(this.#outbox)
    this.#answerTimer = setTimeout(() => { this.#end(`the guest did not answer within ${answerTimeoutMs} ms`) }, answerTimeoutMs)
    this.#answerTimer.unref()
    stream.on('data', this.#onData).on('drain', this.#onDrain)
      .on('end', this.#onEnd).on('close', this.#onEnd).on('error', this.#onError)
    this.#handshake.start()
  }

  async run (workload: Workload): Promise<void> {
    const trust = workload.trust === undefined ? undefined : encodeTrust(workload.trust)
    const announced = trust?.payloads.map((payload) => this.#open({ input: false, outputs: [], decode: refuseOn }, payload).result) ?? []
    const opened = this.#open({ input: false, outputs: [], decode: refuseOn }, encodeRun(workload, new Date(), trust?.bundleBytes))
    if (this.#phase === 'syncing' && this.#endReason === undefined) {
      // Right behind the sync, so that a cold boot needs no round trip.
      this.#handshake.commit()
      this.#outbox.release()
    }
    // A guest that has refused a piece refuses the workload as well, but its first refusal has the reason.
    await traced('guest run', GUEST, async () => await Promise.all([...announced, opened.result]))
  }

  sleep (options: SleepOptions = {}): Promise<void> {
    return this.#order('sleep', encodeSleep(options), options.timeoutMs ?? DEFAULT_SLEEP_MS)
  }

  flush (): Promise<void> {
    return this.#order('flush', encodeFlush(), DEFAULT_SLEEP_MS)
  }

  async wake (identity: GuestIdentity = {}): Promise<void> {
    // Before the guest is there the time would become stale in the queue.
    await this.hello
    await this.#order('wake', encodeWake(identity, new Date()), WAKE_MS)
  }

  async rehearse (options: Rehearsal = {}): Promise<void> {
    await this.hello
    // What the command of a rehearsal says is nobody's.
    await this.#order('rehearse', encodeRehearse(options, new Date()), REHEARSE_MS, [1, 2])
  }

  async bind (): Promise<void> {
    await this.hello
    await this.#order('bind', encodeBind(), BIND_MS)
  }

  async mount (mount: GuestMount): Promise<void> {
    await this.#order('mount', encodeMountRequest(mount), VOLUME_MS)
  }

  async unmount (mount: Pick<GuestMount, 'device' | 'overlayDevice'>): Promise<void> {
    await this.#order('unmount', encodeUnmount(mount), VOLUME_MS)
  }

  exec (spec: ExecSpec): ExecSession {
    const session = execSession(this.#ask({ input: true, outputs: [1, 2], decode: decodeExec }, encodeExec(spec)))
    traced('guest exec', GUEST, async () => await session.result).catch(() => {})
    return session
  }

  stat (path: string, { follow, signal }: PathOptions): Promise<PathFacts> {
    return traced('guest stat', GUEST, async () => await unlessCancelled(signal, () => this.#ask({ input: false, outputs: [], decode: decodeStat }, encodePathRequest('stat', path, follow))))
  }

  put (spec: PutSpec): GuestUpload {
    return guestUpload(this.#ask({ input: true, outputs: [], decode: decodePut }, encodePut(spec)), spec.type)
  }

  get (path: string, { follow, signal }: PathOptions): AsyncIterable<GuestEntry> {
    return guestEntries(
      () => this.#ask({ input: false, outputs: [1], decode: refuseOn }, encodePathRequest('get', path, follow)),
      (error) => {
        if (!(error instanceof ProtocolViolation)) return error
        this.#end(`the guest ${error.message}`)
        return this.#gone()
      },
      signal)
  }

  listen (port: number, accept: (connection: Duplex) => void): Promise<GuestListener> {
    return listenOn((spec, payload) => this.#ask(spec, payload), port, accept)
  }

  connect (port: number, { address, signal }: ConnectOptions): Promise<Duplex> {
    return connectTo((spec, payload) => this.#ask(spec, payload), port, address, signal)
  }

  shutdown (graceMs: number, signal?: number): Promise<void> {
    return traced('guest shutdown', GUEST, async () => await this.#open({ input: false, outputs: [], decode: refuseOn }, encodeShutdown(graceMs, signal)).result)
  }

  onStarted (listener: () => void): () => void { return this.#started.on(listener) }
  onExited (listener: (exit: GuestExit) => void): () => void { return this.#exited.on(listener) }
  close (): void { this.#end('the server closed it') }

  nop (): void { this.#idle.count() }

  data (channel: number, stream: number, piece: Buffer): void {
    if (piece.length === 0) this.#idle.count()
    this.#find(channel)?.data(stream, piece)
  }

  eof (channel: number, stream: number): void { this.#find(channel)?.eof(stream) }

  credit (channel: number, _stream: number, bytes: number): void {
    if (bytes === 0) this.#idle.count()
    this.#find(channel)?.credit(bytes)
  }

  message (type: 1 | 7 | 8, channel: number, payload: Buffer): void {
    if (type === FrameType.hello) return this.#greet(payload)
    if (type === FrameType.event) return this.#event(payload)
    this.#find(channel)?.finish(payload)
    this.#channels.delete(channel)
  }

  /** A missing channel is no fault: its end may cross with frames of the other side. */
  #find (channel: number): OpenChannel | undefined {
    this.#expectGreeted()
    const open = this.#channels.get(channel)
    if (open === undefined) this.#idle.count()
    return open
  }

  #expectGreeted (): void {
    if (this.#phase !== 'talking') throw new ProtocolViolation('did not begin with HELLO')
  }

  readonly #onDrain = (): void => { this.#outbox.drain() }
  readonly #onEnd = (): void => { this.#end('the guest side closed it') }
  readonly #onError = (error: Error): void => { this.#end(`its stream failed: ${error.message}`) }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#endReason !== undefined) return
    try {
      this.#take(chunk)
    } catch (error) {
      if (error instanceof ProtocolViolation) return this.#end(`the guest ${error.message}`)
      // Our fault or a reader's: the guest's bytes must never end the server, whatever they cause.
      this.#log.error({ err: error }, 'a guest link failed on what it received')
      this.#end('it failed inside the server')
    }
  }

  #take (chunk: Buffer): void {
    let bytes: Buffer | undefined = chunk
    if (this.#phase === 'syncing') {
      bytes = this.#handshake.push(chunk)
      if (bytes === undefined) return
      this.#phase = 'greeting'
      this.#outbox.release()
    }
    this.#parser.push(bytes)
  }

  #greet (payload: Buffer): void {
    if (this.#phase !== 'greeting') throw new ProtocolViolation('sent HELLO twice')
    const { hello, exit } = decodeHello(payload)
    this.#phase = 'talking'
    clearTimeout(this.#answerTimer)
    this.#settleHello.resolve(hello)
    if (hello.phase === 'running' || hello.phase === 'asleep') this.#started.happen(undefined)
    if (exit !== undefined) this.#exited.happen(exit)
  }

  #event (payload: Buffer): void {
    this.#expectGreeted()
    const event = decodeEvent(payload)
    if (event.name === 'started') this.#started.happen(undefined)
    else if (event.name === 'exited') this.#exited.happen(event.exit)
    else this.#idle.count()
  }

  /**
   * Opens a channel for one of the requests of which there may be any number. An honest guest has 64 channels and answers the rest with a refusal at once;
   * a guest that answers nothing must not make the server remember ever more of them.
   */
  #ask<T> (spec: ChannelSpec<T>, payload: Buffer): Channel<T> {
    if (this.#channels.size < MAX_UNANSWERED) return this.#open(spec, payload)
    const channel = new Channel(0, this.#outbox, spec)
    channel.abandon(guestRefused(`the guest has left ${this.#channels.size} requests unanswered`, { errno: EAGAIN }))
    return channel
  }

  #open<T> (spec: ChannelSpec<T>, payload: Buffer): Channel<T> {
    const channel = new Channel(++this.#lastChannel, this.#outbox, spec)
    if (this.#endReason !== undefined) {
      channel.abandon(this.#gone())
    } else if (payload.length > MAX_PAYLOAD_BYTES) {
      channel.abandon(guestRefused(`arguments and environment take ${payload.length} bytes; at most ${MAX_PAYLOAD_BYTES} fit`, { errno: E2BIG }))
    } else {
      this.#channels.set(channel.id, channel)
      this.#outbox.send(encodeFrame(FrameType.open, channel.id, 0, payload))
    }
    return channel
  }

  /** A request with a time limit. What a guest that does not answer has done is unknown, so the link ends. */
  async #order (kind: string, payload: Buffer, limitMs: number, outputs: readonly number[] = []): Promise<void> {
    const opened = this.#open({ input: false, outputs, decode: refuseOn }, payload)
    const ms = limitMs + this.#answerMarginMs
    const timer = setTimeout(() => { this.#end(`the guest did not answer "${kind}" within ${ms} ms`) }, ms)
    timer.unref()
    try {
      await traced(`guest ${kind}`, GUEST, async () => await opened.result)
    } finally {
      clearTimeout(timer)
    }
  }

  #gone (): ReturnType<typeof GuestGone> { return GuestGone(this.#endReason ?? 'unknown') }

  #end (reason: string): void {
    if (this.#endReason !== undefined) return
    this.#endReason = reason
    clearTimeout(this.#answerTimer)
    this.#handshake.stop()
    this.#outbox.close()
    const stream = this.#stream
    stream.off('data', this.#onData).off('drain', this.#onDrain).off('end', this.#onEnd).off('close', this.#onEnd)
    // `#onError` stays: a stream may fail while it is being destroyed, and does nothing any more.
    stream.destroy()
    const gone = this.#gone()
    for (const channel of this.#channels.values()) channel.abandon(gone)
    this.#channels.clear()
    this.#started.forget()
    this.#exited.forget()
    this.#settleHello.reject(gone)
    this.#settleClosed(reason)
  }
}

const decodeExec: ChannelSpec<ExecResult>['decode'] = (fields) => {
  if (!fields.has(Tag.exitCode)) refuseOn(fields)
  return decodeExecResult(fields)
}
const decodeStat: ChannelSpec<PathFacts>['decode'] = (fields) => {
  refuseOn(fields)
  return decodeFacts(fields)
}
const decodePut: ChannelSpec<{ readonly bytes: number }>['decode'] = (fields) => {
  refuseOn(fields)
  return decodePutResult(fields)
}
