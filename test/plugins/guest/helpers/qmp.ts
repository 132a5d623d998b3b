// The smallest QMP client that the tests need: commands one after the other, and the events between them.
import { once, EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { createInterface } from 'node:readline'

interface Message { readonly return?: unknown, readonly error?: { readonly desc: string }, readonly event?: string, readonly data?: Readonly<Record<string, unknown>> }

export class Qmp {
  readonly #socket: Socket
  readonly #answers = new EventEmitter()

  private constructor (socket: Socket) {
    this.#socket = socket
    // The machine's end is seen by who waits for it.
    socket.on('error', () => {})
    createInterface(socket).on('error', () => {}).on('line', (line) => {
      const message: Message = JSON.parse(line)
      if (message.event !== undefined) this.#answers.emit('event', message.event, message.data ?? {})
      else if ('return' in message || message.error !== undefined) this.#answers.emit('answer', message)
    })
  }

  static async over (socket: Socket): Promise<Qmp> {
    const qmp = new Qmp(socket)
    await qmp.run('qmp_capabilities')
    return qmp
  }

  async run (command: string, parameters: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const answered = once(this.#answers, 'answer')
    this.#socket.write(JSON.stringify({ execute: command, arguments: parameters }) + '\n')
    const [message]: [Message] = await answered as [Message]
    if (message.error !== undefined) throw new Error(`${command}: ${message.error.desc}`)
  }

  /** The migration's end: `completed` or `failed`. Ask before it is started. */
  migrated (): Promise<string> {
    return new Promise((resolve) => {
      const listener = (event: string, { status }: Readonly<Record<string, unknown>>) => {
        if (event !== 'MIGRATION' || (status !== 'completed' && status !== 'failed')) return
        this.#answers.off('event', listener)
        resolve(status)
      }
      this.#answers.on('event', listener)
    })
  }
}
