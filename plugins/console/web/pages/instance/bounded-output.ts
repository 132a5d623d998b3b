// The output of a program that may print faster than the screen draws: what waits to be drawn is limited, and what is left out is told.

/** The screen's own limit is 50 MB, beyond which it throws. */
export const MOST_WAITING = 16 * 1024 * 1024
/** Ends an escape sequence that what was left out has cut off. */
const CANCEL = '\u0018'

/** @param write draws sometime, and calls `drawn` then */
export function boundedOutput (write: (data: Uint8Array | string, drawn?: () => void) => void): (chunk: Uint8Array) => void {
  let waiting = 0
  let leftOut = 0
  return (chunk) => {
    // All until the screen has caught up: one gap, not many.
    if (leftOut > 0 || (waiting > 0 && waiting + chunk.length > MOST_WAITING)) { leftOut += chunk.length; return }
    waiting += chunk.length
    write(chunk, () => {
      waiting -= chunk.length
      if (waiting > 0 || leftOut === 0) return
      const bytes = leftOut
      leftOut = 0
      write(`${CANCEL}\r\n… ${bytes.toLocaleString()} bytes came too fast to be shown …\r\n`)
    })
  }
}
