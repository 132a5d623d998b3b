// The server under torture: it is killed and started again on the same folder, and must not end by itself.
import { setTimeout as delay } from 'node:timers/promises'
import { startServer, type ServerOptions, type ServerProcess } from '../../../setup/server/process.ts'
import { complain, say } from '../complaints.ts'

const START_MS = 180_000
const POLL_MS = 20
const RETRY_MS = 1_000

export class TorturedServer {
  readonly #options: ServerOptions
  #current: ServerProcess | undefined
  #isWanted = false
  #starting: Promise<void> | undefined
  /** how many times it was killed */
  kills = 0

  constructor (options: ServerOptions) {
    this.#options = { ...options, readyTimeoutMs: START_MS }
  }

  get now (): ServerProcess {
    if (this.#current === undefined) throw new Error('the server has not been started')
    return this.#current
  }

  get isUp (): boolean {
    return this.#isWanted
  }

  async start (): Promise<void> {
    if (this.#isWanted) return
    const started = this.#current === undefined ? await startServer(this.#options) : await this.#current.restart()
    this.#current = started
    this.#isWanted = true
    void started.ended.then((how) => { if (this.#current === started && this.#isWanted) complain(`the server ${how} by itself`) })
  }

  /** Starts it on a host that may still be in trouble: then it is tried again. */
  async startAgain (): Promise<void> {
    for (const deadline = performance.now() + START_MS; ;) {
      try {
        await (this.#starting ??= this.start().finally(() => { this.#starting = undefined }))
        return
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error)
        say(`  the server did not start: ${text.split('\n').slice(-3).join(' ').slice(-600)}`)
        if (performance.now() > deadline) {
          complain(`the server does not start: ${text}`)
          return
        }
        await delay(RETRY_MS)
      }
    }
  }

  async kill (): Promise<void> {
    if (!this.#isWanted) return
    this.#isWanted = false
    this.kills++
    await this.now.kill()
  }

  async stop (): Promise<void> {
    this.#isWanted = false
    await this.#current?.stop()
  }

  /** Waits while it is away. */
  async up (): Promise<ServerProcess> {
    while (!this.#isWanted) await delay(POLL_MS)
    return this.now
  }
}
