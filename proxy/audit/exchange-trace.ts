// The times of the steps of one request, for its trace. It exists only while the server takes traces.
import type { AuditEntry, TracingPolicy } from '../contract/control.ts'

export type TraceSteps = NonNullable<AuditEntry['trace']>

/** The opening of a connection to an origin: when the name was resolved, and when the connection could be used. */
export interface Opening {
  readonly resolvedMs: number
  readonly openMs: number
}

/** of connections and sessions to origins */
export const openings = new WeakMap<object, Opening>()

/** What is made on a connection is as old as that. */
export function passOpening (from: object, to: object): void {
  const opening = openings.get(from)
  if (opening !== undefined) openings.set(to, opening)
}

/** W3C's form of version 0. Later versions begin with the same fields. */
const TRACEPARENT = /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/

export class ExchangeTrace {
  readonly #policy: TracingPolicy
  readonly #startedMs: number
  #parent: string | undefined
  #resolved: number | undefined
  #opened: number | undefined
  #sent: number | undefined
  #answered: number | undefined

  constructor (policy: TracingPolicy, startedMs: number) {
    this.#policy = policy
    this.#startedMs = startedMs
  }

  /** Continues the guest's own trace. An invalid `traceparent` is ignored. */
  goOn (traceparent: string | string[] | undefined): void {
    if (typeof traceparent === 'string' && TRACEPARENT.test(traceparent)) this.#parent = traceparent
  }

  /** Whether a header field of the guest is about traces and is not passed on. */
  keeps (name: string): boolean {
    return (name === 'traceparent' || name === 'tracestate') && !this.#policy.passTraceparent
  }

  /** The header was written to a connection or session. One that was open before has no steps of this request. */
  sent (way: object): void {
    const opening = openings.get(way)
    if (opening !== undefined && opening.openMs >= this.#startedMs) {
      this.#resolved = this.#since(Math.max(opening.resolvedMs, this.#startedMs))
      this.#opened = this.#since(opening.openMs)
    }
    this.#sent = this.#since(performance.now())
  }

  answered (): void {
    this.#answered ??= this.#since(performance.now())
  }

  get steps (): TraceSteps {
    return {
      ...this.#parent === undefined ? {} : { parent: this.#parent },
      ...this.#resolved === undefined ? {} : { resolvedMs: this.#resolved },
      ...this.#opened === undefined ? {} : { openedMs: this.#opened },
      ...this.#sent === undefined ? {} : { sentMs: this.#sent },
      ...this.#answered === undefined ? {} : { answeredMs: this.#answered }
    }
  }

  #since (ms: number): number {
    return Math.round((ms - this.#startedMs) * 1000) / 1000
  }
}
