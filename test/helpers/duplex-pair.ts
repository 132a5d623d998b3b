// Two ends of a stream in this process, which are no sockets. Node's own does not tell one end of the other's destruction.
import { Duplex } from 'node:stream'

class End extends Duplex {
  other: End | undefined
  #taken: (() => void) | undefined

  override _read (): void {
    const taken = this.#taken
    this.#taken = undefined
    taken?.()
  }

  override _write (chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.other?.arrive(chunk, done)
  }

  override _final (done: () => void): void {
    this.other?.arrive(null, done)
  }

  override _destroy (error: Error | null, done: (error?: Error | null) => void): void {
    this.#taken?.()
    if (this.writableFinished) return done(error)
    // a little later, as with a socket
    setImmediate(() => { this.other?.arrive(null, () => undefined) })
    done(error)
  }

  arrive (chunk: Buffer | null, taken: () => void): void {
    if (this.destroyed || this.readableEnded) return taken()
    if (chunk === null || this.push(chunk)) taken()
    else this.#taken = taken
    if (chunk === null) this.push(null)
  }
}

/** What is written to one is read from the other; both half-close. */
export function duplexPair (): readonly [Duplex, Duplex] {
  const near = new End({ allowHalfOpen: true })
  const far = new End({ allowHalfOpen: true })
  near.other = far
  far.other = near
  return [near, far]
}
