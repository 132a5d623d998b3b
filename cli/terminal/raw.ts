// Raw mode of the terminal: each key is passed to the other side, and the terminal is restored on every way out.
import { Transform } from 'node:stream'

const LEAVE = [0x10, 0x11] as const

export interface RawTerminal {
  /** The keys, without those that detach. */
  readonly keys: Transform
  /** Aborted by Ctrl-P Ctrl-Q. */
  readonly left: AbortSignal
  /** Restores the terminal. */
  restore (): void
}

/** `input` must be a terminal. */
export function openRaw (input: NodeJS.ReadStream): RawTerminal {
  const left = new AbortController()
  let isHeld = false
  const keys = new Transform({
    transform (chunk: Buffer, _encoding, done) {
      const out: number[] = []
      for (const byte of chunk) {
        if (isHeld && byte === LEAVE[1]) {
          left.abort()
          break
        }
        if (isHeld) out.push(LEAVE[0])
        isHeld = byte === LEAVE[0]
        if (!isHeld) out.push(byte)
      }
      done(null, out.length === 0 ? undefined : Buffer.from(out))
    }
  })
  const restore = (): void => { if (input.isRaw) input.setRawMode(false) }
  process.once('exit', restore)
  input.setRawMode(true)
  input.pipe(keys)
  return {
    keys,
    left: left.signal,
    restore: () => {
      restore()
      process.off('exit', restore)
      input.unpipe(keys)
      input.pause()
    }
  }
}
