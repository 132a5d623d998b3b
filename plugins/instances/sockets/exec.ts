// One exec session: a command in the guest whose streams run over a WebSocket. README.md describes the messages.
import { constants } from 'node:os'
import { once } from 'node:events'
import { finished } from 'node:stream'
import { createId } from '@paralleldrive/cuid2'
import type { WebSocket } from 'ws'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { withSignals } from '../../../core/jobs/deadline.ts'
import { deferred } from '../../../core/jobs/deferred.ts'
import type { ExecSession, ExecSpec, GuestLink } from '../../guest/contract.ts'
import { awaitAgent } from '../guest/agent.ts'
import type { Context } from '../context.ts'
import { isLoss, isRefusal } from '../guest/guest-errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { MessageStream, type Message } from './messages.ts'
import { parseControl, parseExecRequest, resizeIn, type ExecControl, type ExecRequest } from './requests.ts'

const FIRST_MESSAGE_MS = 30_000
const DEFAULT_AGENT_WAIT_MS = 5000
/** how late the guest may be in ending a command whose time is over, or whose client has gone */
const SLACK_MS = 5000
/** most output that waits for a slow client; with more, the guest is held back */
const MOST_WAITING_BYTES = 256 * 1024
const TIMED_OUT = 124
const STDOUT = Buffer.from([1])
const STDERR = Buffer.from([2])

/** Serves one socket to its end. Never rejects. */
export async function serveExec (context: Context, instance: LiveInstance, socket: WebSocket): Promise<void> {
  const messages = new MessageStream(socket)
  try {
    const first = await messages.next(AbortSignal.timeout(FIRST_MESSAGE_MS))
    if (first === undefined) return messages.close(1008, 'no request came')
    const request = parseExecRequest(first.data.toString('utf8'))
    const link = await awaitAgent(instance, (request.wait_for_agent ?? 0) * 1000 || DEFAULT_AGENT_WAIT_MS, messages.closed)
    if (messages.closed.aborted) return
    context.metrics.execStarted()
    await new Exec(context, messages, request, open(context, link, instance, request)).run()
  } catch (error) {
    const known = error instanceof BerthError || isLoss(error) || isRefusal(error)
    if (!known) context.log.error({ err: error, instance: instance.id }, 'an exec session failed')
    await messages.sendJson({ error: known ? error.message : 'internal error' })
    messages.close(InvalidRequest.is(error) ? 1008 : 1011)
  }
}

/** @throws InvalidRequest when it is more than the guest can be told */
function open ({ guest: { messageSizes } }: Context, link: GuestLink, instance: LiveInstance, request: ExecRequest): ExecSession {
  const { command, env, cwd, user, timeout } = request
  const spec: ExecSpec = {
    argv: command === undefined || command.length === 0 ? ['/bin/sh'] : command,
    env: { ...(request.tty === true ? { TERM: 'xterm' } : {}), ...instance.session?.workload.env, ...env },
    cwd: cwd ?? '/',
    ...(user === undefined || user === '' ? {} : { user }),
    ...(request.tty === true ? { tty: { rows: request.rows ?? 24, cols: request.cols ?? 80 } } : {}),
    ...(timeout === undefined || timeout === 0 ? {} : { timeoutMs: Math.ceil(timeout * 1000) })
  }
  const bytes = messageSizes.command(spec)
  if (bytes > messageSizes.most) throw InvalidRequest(`command and env: with the environment of the instance they take ${bytes} bytes; at most ${messageSizes.most} fit into what a guest can be told`)
  return link.exec(spec)
}

class Exec {
  readonly #context: Context
  readonly #messages: MessageStream
  readonly #request: ExecRequest
  readonly #session: ExecSession
  readonly #ended = new AbortController()
  /** resolves when the guest has not ended a command that it was told to end */
  readonly #abandoned = deferred<undefined>()
  #abandoning: NodeJS.Timeout | undefined
  /** output that the client has not taken yet */
  #waitingBytes = 0
  #timedOut = false

  constructor (context: Context, messages: MessageStream, request: ExecRequest, session: ExecSession) {
    this.#context = context
    this.#messages = messages
    this.#request = request
    this.#session = session
  }

  async run (): Promise<void> {
    const { closed } = this.#messages
    const cancel = (): void => { this.#cancel() }
    closed.addEventListener('abort', cancel)
    if (closed.aborted) cancel()
    const endGuard = this.#guardTimeout()
    // The command may end its standard input early: that is no failure.
    this.#session.stdin.on('error', () => {})
    try {
      let fault: unknown
      this.#readInput().catch((error: unknown) => {
        fault = error
        this.#cancel()
      })
      const outputs = this.#relayOutputs()
      const result = await Promise.race([this.#session.result, this.#abandoned.promise])
      if (result === undefined) for (const output of [this.#session.stdout, this.#session.stderr]) output.destroy()
      if (fault !== undefined) throw fault
      await outputs
      if (result?.error !== undefined) await this.#output(STDERR, Buffer.from(`Error: ${result.error}\r\n`))
      await this.#messages.sendJson({ exitCode: this.#timedOut || result === undefined ? TIMED_OUT : result.exitCode })
      this.#messages.close(1000)
    } finally {
      this.#ended.abort()
      endGuard()
      clearInterval(this.#abandoning)
      closed.removeEventListener('abort', cancel)
    }
  }

  /** Tells the guest to end the command, and does not wait long for a guest that does not. */
  #cancel (): void {
    this.#session.cancel()
    this.#abandoning ??= setInterval(() => {
      // Its output may be all there, and wait for a slow client.
      if (this.#waitingBytes === 0 || this.#messages.closed.aborted) this.#abandoned.resolve(undefined)
    }, SLACK_MS)
  }

  /** The guest ends the command at its timeout. This guard is for a guest that does not. Returns the guard's end. */
  #guardTimeout (): () => void {
    const { timeout } = this.#request
    if (timeout === undefined || timeout === 0) return () => {}
    const key = `exec ${createId()}`
    const { alarms } = this.#context
    const lateAt = performance.now() + timeout * 1000 + SLACK_MS
    alarms.set(key, () => lateAt - performance.now(), () => {
      this.#timedOut = true
      this.#cancel()
    })
    return () => { alarms.clear(key) }
  }

  async #readInput (): Promise<void> {
    if (this.#request.stdin === false) this.#session.stdin.end()
    for (;;) {
      const message = await this.#messages.next(this.#ended.signal)
      if (message === undefined) return
      const control = this.#controlIn(message)
      if (control === undefined) await this.#write(message.data)
      else await this.#obey(control)
    }
  }

  /** The command in the message; `undefined` when the message is standard input. */
  #controlIn ({ data, binary }: Message): ExecControl | undefined {
    if (binary) return undefined
    if (this.#request.control === true) return parseControl(data.toString('utf8'))
    // For compatible clients: text is standard input, except resizes of a terminal.
    if (this.#request.tty !== true) return undefined
    const resize = resizeIn(data.toString('utf8'))
    return resize === undefined ? undefined : { resize }
  }

  /** Returns when the guest takes more: the client waits meanwhile, as it does with its input. */
  async #obey ({ resize, signal, stdin }: ExecControl): Promise<void> {
    if (resize !== undefined) await this.#session.resize(resize.rows, resize.cols)
    if (signal !== undefined) await this.#session.signal(signalNumber(signal))
    if (stdin !== undefined) this.#session.stdin.end()
  }

  async #write (data: Buffer): Promise<void> {
    const { stdin } = this.#session
    this.#context.metrics.execBytes('in', data.length)
    if (!stdin.writable || stdin.write(data)) return
    // The loop reads no further message meanwhile, which makes the client wait.
    try {
      await withSignals([this.#ended.signal, this.#messages.closed], async (signal) => await once(stdin, 'drain', { signal }))
    } catch (error) {
      // The command or its standard input has ended: the rest of the input is dropped.
      if (stdin.writable && !this.#ended.signal.aborted && !this.#messages.closed.aborted) throw error
    }
  }

  /** Sends both outputs in the order in which they come from the guest. Returns when both have ended; the session's result says what went wrong. */
  async #relayOutputs (): Promise<void> {
    const outputs = [[this.#session.stdout, STDOUT], [this.#session.stderr, STDERR]] as const
    let sent = Promise.resolve()
    const ends = outputs.map(async ([output, stream]) => {
      output.on('data', (chunk: Buffer) => {
        this.#waitingBytes += chunk.length
        if (this.#waitingBytes > MOST_WAITING_BYTES) for (const [each] of outputs) each.pause()
        sent = sent.then(async () => {
          await this.#output(stream, chunk)
          this.#waitingBytes -= chunk.length
          if (this.#waitingBytes <= MOST_WAITING_BYTES) for (const [each] of outputs) each.resume()
        })
      })
      await new Promise<void>((resolve) => { finished(output, () => { resolve() }) })
    })
    await Promise.all(ends)
    await sent
  }

  async #output (stream: Buffer, chunk: Buffer): Promise<void> {
    this.#context.metrics.execBytes('out', chunk.length)
    await this.#messages.sendBinary(this.#request.streams === true ? Buffer.concat([stream, chunk]) : chunk)
  }
}

function signalNumber (signal: string | number): number {
  if (typeof signal === 'number') return signal
  const name = signal.toUpperCase().replace(/^(?!SIG)/, 'SIG')
  const found = Object.entries(constants.signals).find(([known]) => known === name)
  if (found === undefined) throw InvalidRequest(`signal: "${signal}" is no signal`)
  return found[1]
}
