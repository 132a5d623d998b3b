// Speaks QMP, QEMU's control protocol: one JSON object per line. A guest may control the VMM, so its messages are bounded and checked.
import type { Duplex } from 'node:stream'
import { isRecord } from '../../core/json/is-record.ts'
import { traced } from '../../core/tracing/span.ts'
import { QmpClosed, QmpRefused, QmpTimeout } from './errors.ts'

const MAX_LINE_BYTES = 2 ** 20
const MAX_PENDING = 64
const MOST_REASON_CHARACTERS = 2000

export interface QmpClient {
  /** version of QEMU, from its greeting */
  readonly version: string
  /** Rejects with `QmpRefused`, `QmpTimeout` or `QmpClosed`. Without `timeoutMs` it waits as long as the connection lives. */
  execute (command: string, args?: Readonly<Record<string, unknown>>, timeoutMs?: number): Promise<unknown>
  /** Returns the unsubscriber. */
  onEvent (listener: QmpListener): () => void
  /** Resolves when the connection has ended, with the reason. */
  readonly closed: Promise<string>
  close (): void
}

export type QmpListener = (name: string, data: Record<string, unknown>) => void

interface Pending { readonly command: string, readonly resolve: (value: unknown) => void, readonly reject: (error: unknown) => void }

/** Performs QMP's handshake on a new control socket. Destroys the socket when that fails. */
export async function openQmp (socket: Duplex, timeoutMs: number): Promise<QmpClient> {
  const session = new QmpSession(socket)
  try {
    await session.handshake(timeoutMs)
    return session
  } catch (error) {
    session.close()
    throw error
  }
}

class QmpSession implements QmpClient {
  version = ''
  readonly closed: Promise<string>
  readonly #socket: Duplex
  readonly #pending = new Map<number, Pending>()
  readonly #listeners = new Set<QmpListener>()
  #greeting: { resolve: (version: string) => void, reject: (error: unknown) => void } | undefined
  #lastId = 0
  #parts: Buffer[] = []
  #partBytes = 0
  #reason: string | undefined
  #resolveClosed: (reason: string) => void = () => {}

  constructor (socket: Duplex) {
    this.#socket = socket
    this.closed = new Promise((resolve) => { this.#resolveClosed = resolve })
    socket.on('data', (chunk: Buffer) => this.#receive(chunk))
    socket.on('error', (error) => this.#end(error.message))
    for (const event of ['end', 'close']) socket.on(event, () => this.#end('QEMU closed it'))
    // A QEMU that ends at once may have closed the socket before anyone listened for that.
    if (socket.destroyed) this.#end('QEMU closed it')
  }

  async handshake (timeoutMs: number): Promise<void> {
    if (this.#reason !== undefined) throw QmpClosed(this.#reason)
    const greeted = new Promise<string>((resolve, reject) => { this.#greeting = { resolve, reject } })
    const timer = setTimeout(() => this.#greeting?.reject(QmpTimeout('the connection', timeoutMs)), timeoutMs)
    try {
      this.version = await greeted
    } finally {
      clearTimeout(timer)
      this.#greeting = undefined
    }
    await this.execute('qmp_capabilities', {}, timeoutMs)
  }

  execute (command: string, args: Readonly<Record<string, unknown>> = {}, timeoutMs?: number): Promise<unknown> {
    return traced(`QMP ${command}`, { kind: 'client' }, () => this.#execute(command, args, timeoutMs))
  }

  #execute (command: string, args: Readonly<Record<string, unknown>>, timeoutMs: number | undefined): Promise<unknown> {
    if (this.#reason !== undefined) return Promise.reject(QmpClosed(this.#reason))
    if (this.#pending.size >= MAX_PENDING) return Promise.reject(QmpRefused(command, `${MAX_PENDING} commands are waiting already`))
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => {
        // A late answer finds no entry and is dropped.
        this.#pending.delete(id)
        reject(QmpTimeout(command, timeoutMs))
      }, timeoutMs)
      this.#pending.set(id, {
        command,
        resolve: (value) => { clearTimeout(timer); resolve(value) },
        reject: (error) => { clearTimeout(timer); reject(error) }
      })
      this.#socket.write(JSON.stringify({ execute: command, arguments: args, id }) + '\n')
    })
  }

  onEvent (listener: QmpListener): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  close (): void {
    this.#end('Berth closed it')
  }

  #end (reason: string): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#socket.destroy()
    const error = QmpClosed(reason)
    this.#greeting?.reject(error)
    for (const pending of this.#pending.values()) pending.reject(error)
    this.#pending.clear()
    this.#resolveClosed(reason)
  }

  #receive (chunk: Buffer): void {
    let start = 0
    for (let end = chunk.indexOf(10); end !== -1 && this.#reason === undefined; end = chunk.indexOf(10, start)) {
      const line = Buffer.concat([...this.#parts, chunk.subarray(start, end)])
      this.#parts = []
      this.#partBytes = 0
      start = end + 1
      if (line.length > MAX_LINE_BYTES) return this.#end('it sent a line that is too long')
      this.#take(line.toString('utf8'))
    }
    if (start === chunk.length) return
    this.#parts.push(chunk.subarray(start))
    this.#partBytes += chunk.length - start
    if (this.#partBytes > MAX_LINE_BYTES) this.#end('it sent a line that is too long')
  }

  #take (line: string): void {
    if (line.trim() === '') return
    let message: unknown
    try {
      message = JSON.parse(line)
    } catch (error) {
      return this.#end(`it sent a line that is not JSON (${error instanceof Error ? error.message : 'unreadable'})`)
    }
    if (!isRecord(message)) return this.#end('it sent a line that is not an object')
    try {
      this.#deal(message)
    } catch (error) {
      // Nobody else is there to catch it: it came from the socket, and would end the server.
      this.#end(`it sent a line that cannot be taken in (${error instanceof Error ? error.message : 'unreadable'})`)
    }
  }

  #deal (message: Record<string, unknown>): void {
    if (isRecord(message['QMP'])) return this.#greeting?.resolve(versionOf(message['QMP']))
    if (typeof message['event'] === 'string') {
      const data = isRecord(message['data']) ? message['data'] : {}
      for (const listener of [...this.#listeners]) listener(message['event'], data)
      return
    }
    this.#answer(message)
  }

  #answer (message: Record<string, unknown>): void {
    const id = message['id']
    const pending = typeof id === 'number' ? this.#pending.get(id) : undefined
    if (typeof id !== 'number' || pending === undefined) return
    this.#pending.delete(id)
    const error = message['error']
    if (isRecord(error)) pending.reject(QmpRefused(pending.command, reasonIn(error['desc']) ?? 'it does not say why'))
    else pending.resolve(message['return'])
  }
}

/** What QEMU says of a failure, at a length that a log can take; undefined when that is no text. */
export function reasonIn (said: unknown): string | undefined {
  return typeof said === 'string' && said !== '' ? said.slice(0, MOST_REASON_CHARACTERS) : undefined
}

function versionOf (greeting: Record<string, unknown>): string {
  const version = greeting['version']
  const qemu = isRecord(version) ? version['qemu'] : undefined
  if (!isRecord(qemu)) return 'unknown'
  const numbers = [qemu['major'], qemu['minor'], qemu['micro']]
  return numbers.every((number) => Number.isSafeInteger(number) && Number(number) >= 0) ? numbers.join('.') : 'unknown'
}
