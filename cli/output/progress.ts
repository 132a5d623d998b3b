// One line on standard error that says what the command waits for. Nothing when standard error is not a terminal.
import stringWidth from 'string-width'
import { clean } from '../../core/clean-text.ts'
import { size } from './values.ts'

export interface Progress {
  /** Shows the current step. */
  step (text: string): void
  /** Shows the bytes so far, and the total if it is known. */
  bytes (text: string, done: number, total?: number): void
  /** Removes the line. */
  end (): void
}

const EVERY_MS = 100

export function createProgress (stream: Pick<NodeJS.WriteStream, 'isTTY' | 'columns'> & { write (text: string): unknown }, quiet: boolean): Progress {
  if (quiet || !stream.isTTY) return { step: () => undefined, bytes: () => undefined, end: () => undefined }
  let shown = ''
  let last = 0
  let began = Date.now()
  let subject = ''
  const show = (text: string): void => {
    const line = fit(clean(text), stream.columns)
    if (line === shown) return
    stream.write(`\r${line}\u001b[K`)
    shown = line
  }
  return {
    step: show,
    bytes: (text, done, total) => {
      const now = Date.now()
      if (text !== subject) {
        subject = text
        began = now
      } else if (now - last < EVERY_MS) return
      last = now
      const rate = done / Math.max(0.001, (now - began) / 1000)
      show(`${text} ${size(done)}${total === undefined ? '' : ` of ${size(total)}`}, ${size(rate)}/s`)
    },
    end: () => {
      if (shown !== '') stream.write('\r\u001b[K')
      shown = ''
    }
  }
}

function fit (text: string, columns: number): string {
  const width = Math.max(20, columns - 1)
  if (stringWidth(text) <= width) return text
  return `${text.slice(0, width - 1)}…`
}
