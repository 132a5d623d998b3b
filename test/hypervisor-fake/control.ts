// The client of a fake VMM's control socket, for its driver and for tests that want to make something happen.
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { connectUnix } from '../../core/process/unix-socket.ts'
import { CONTROL_SOCKET, FOLDER } from './script.ts'
import type { ControlAnswer, ControlRequest } from './vmm.ts'

export class FakeControl {
  readonly closed: Promise<void>
  readonly #socket: Socket
  readonly #waiting = new Map<number, { resolve: (answer: ControlAnswer) => void, reject: (error: Error) => void }>()
  #lastId = 0

  /** @param directory the VM's folder */
  static async open (directory: string): Promise<FakeControl> {
    return new FakeControl(await connectUnix(join(directory, FOLDER), CONTROL_SOCKET))
  }

  constructor (socket: Socket) {
    this.#socket = socket
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        for (const { reject } of this.#waiting.values()) reject(new Error('the fake VMM closed its control socket'))
        this.#waiting.clear()
        resolve()
      })
    })
    createInterface({ input: socket }).on('line', (line) => {
      const answer: ControlAnswer = JSON.parse(line)
      this.#waiting.get(answer.id)?.resolve(answer)
      this.#waiting.delete(answer.id)
    }).on('error', () => {})
  }

  /** Resolves with the VMM's answer, however long that takes. */
  ask (request: Omit<ControlRequest, 'id'>): Promise<ControlAnswer> {
    const id = ++this.#lastId
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error('the control socket is closed'))
      this.#waiting.set(id, { resolve, reject })
      this.#socket.write(JSON.stringify({ id, ...request }) + '\n')
    })
  }

  close (): void { this.#socket.destroy() }
}
