// The answers that nginx has cached, each in a file. A removed answer is requested again.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'

const NAME = /^[0-9a-f]{32}$/
/** By then nginx has written an answer that was given just before a change. One that was still being decided about is decided about again. */
const LATE_MS = 1500

export class KeptAnswers {
  readonly #folder: string
  #sweeping: Promise<void> = Promise.resolve()
  #late: NodeJS.Timeout | undefined

  constructor (folder: string) {
    this.#folder = folder
  }

  /** Earlier answers are no longer valid. */
  async forget (): Promise<void> {
    clearTimeout(this.#late)
    const late = setTimeout(() => {
      void this.#sweep().then(() => { if (this.#late === late) this.#late = undefined })
    }, LATE_MS).unref()
    this.#late = late
    await this.#sweep()
  }

  /** Whether an answer from before the last change may still be written. */
  get isSettling (): boolean {
    return this.#late !== undefined
  }

  async close (): Promise<void> {
    if (this.#late !== undefined) {
      clearTimeout(this.#late)
      await this.#sweep()
    }
    await this.#sweeping
  }

  async #sweep (): Promise<void> {
    this.#sweeping = this.#sweeping.then(async () => {
      // Removing does not follow links, and the folder itself is in the server's.
      for (const name of await readdir(this.#folder)) if (NAME.test(name)) await rm(join(this.#folder, name), { force: true })
    }).catch(() => {})
    await this.#sweeping
  }
}
