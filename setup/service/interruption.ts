// Signals that ask an installation to end: it takes everything back first.
import { constants } from 'node:os'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  /** as a shell has it of a program that a signal ended */
  readonly exitCode: number

  constructor (signal: typeof SIGNALS[number]) {
    super(`interrupted by ${signal}`)
    this.exitCode = 128 + constants.signals[signal]
  }
}

/**
 * Aborted, with `Interrupted`, by the first such signal. Further ones are not heard: the undo goes on to its end. Commands that run have sessions of their own, so a terminal's Ctrl-C ends none of them.
 * A terminal that is closed sends SIGHUP; an output that nobody reads, such as that of `| head`, is no reason to stop.
 */
export function interruption (): AbortSignal {
  const controller = new AbortController()
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  for (const signal of SIGNALS) process.on(signal, () => { controller.abort(new Interrupted(signal)) })
  return controller.signal
}
