// Counts frames that have no content, since a guest that sends many of them only costs the server time.
import { MAX_IDLE_FRAMES_PER_SECOND } from './limits.ts'
import { ProtocolViolation } from './violation.ts'

const WINDOW_MS = 1000

export class IdleMeter {
  #count = 0
  #since = 0

  count (): void {
    if (this.#count++ === 0) this.#since = performance.now()
    if (this.#count <= MAX_IDLE_FRAMES_PER_SECOND) return
    if (performance.now() - this.#since < WINDOW_MS) {
      throw new ProtocolViolation(`sent more than ${MAX_IDLE_FRAMES_PER_SECOND} useless frames in a second`)
    }
    this.#count = 0
  }
}
