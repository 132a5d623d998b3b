// Traces of mediated requests: the proxy reports the times of their steps, and here they become spans afterwards. So the proxy needs no connection to a collector, and no secret leaves it.
import type { Logger } from '../../core/contracts/services.ts'
import type { Span, SpanKind } from '../../core/tracing/span.ts'
import type { TraceMaker, Tracing } from '../../core/tracing/tracing.ts'
import type { TracedEntry } from '../../proxy/contract/control.ts'
import type { ControlClient } from './control/client.ts'

export interface RequestTracesOptions {
  readonly tracing: Tracing
  readonly client: Pick<ControlClient, 'traced'>
  readonly log: Logger
  /** whether there is a proxy to ask */
  readonly isUp: () => boolean
  /** The proxy should report requests from now on, or no longer. */
  readonly onChange: () => void
}

/** Interval of queries; the proxy keeps the last 4096 requests. */
const EVERY_MS = 1000

/** Other methods are a guest's own text, which must not be in a trace. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

export class RequestTraces {
  readonly #options: RequestTracesOptions
  #timer: NodeJS.Timeout | undefined
  #forget: (() => void) | undefined
  #asking: Promise<void> | undefined
  #isFailing = false

  constructor (options: RequestTracesOptions) {
    this.#options = options
  }

  /** Starts and stops with the taking of traces. */
  start (): void {
    const follow = (): void => {
      clearInterval(this.#timer)
      this.#timer = this.#options.tracing.maker === undefined ? undefined : setInterval(() => { this.#asking ??= this.#ask().finally(() => { this.#asking = undefined }) }, EVERY_MS)
      this.#options.onChange()
    }
    this.#forget = this.#options.tracing.whenChanged(follow)
    if (this.#options.tracing.maker !== undefined) follow()
  }

  async stop (): Promise<void> {
    this.#forget?.()
    clearInterval(this.#timer)
    await this.#asking
  }

  async #ask (): Promise<void> {
    const { client, isUp, log, tracing } = this.#options
    if (!isUp()) return
    try {
      const entries = await client.traced()
      this.#isFailing = false
      const { maker } = tracing
      if (maker !== undefined) for (const entry of entries) spansOf(maker, entry)
    } catch (error) {
      if (!this.#isFailing) log.warn({ err: error }, 'the egress proxy does not tell of requests: they have no traces until it does')
      this.#isFailing = true
    }
  }
}

/** Makes the trace of one request: the connection to its origin, the origin's time, and the answer. */
function spansOf (maker: TraceMaker, entry: TracedEntry): void {
  const { trace, durationMs, reason, status } = entry
  const endMs = Date.parse(entry.time)
  const startMs = endMs - durationMs
  const at = (stepMs: number): number => startMs + Math.min(Math.max(stepMs, 0), durationMs)
  const method = entry.method === undefined ? undefined : METHODS.has(entry.method) ? entry.method : '_OTHER'
  const verb = method ?? entry.protocol
  const root = maker.root(`egress ${verb}`, { kind: 'server', startMs, ...trace.parent === undefined ? {} : { parent: trace.parent } })
  if (root === undefined) return
  root.set({
    'berth.instance_id': entry.vm, 'network.protocol.name': entry.protocol, 'server.address': entry.host, 'server.port': entry.port, 'berth.egress.credentials': entry.injected.join(','),
    ...method === undefined ? {} : { 'http.request.method': method }, ...status === undefined ? {} : { 'http.response.status_code': status }, ...reason === undefined ? {} : { 'error.type': reason }
  })
  const { sentMs, answeredMs, resolvedMs, openedMs } = trace
  const way = root.child('way to the origin', { startMs })
  if (resolvedMs !== undefined && openedMs !== undefined) {
    step(way, 'resolve', at(0), at(resolvedMs))
    step(way, 'connect', at(resolvedMs), at(openedMs))
  }
  way.end(at(sentMs ?? durationMs))
  if (sentMs !== undefined) step(root, `origin ${verb}`, at(sentMs), at(answeredMs ?? durationMs), 'client')
  if (answeredMs !== undefined) step(root, 'answer', at(answeredMs), endMs)
  // A refusal is the policy's purpose; an unreachable origin is a failure.
  if (reason !== undefined && (status === undefined || status >= 500)) root.fail(Object.assign(new Error(reason), { code: reason }))
  root.end(endMs)
}

function step (parent: Span, name: string, startMs: number, endMs: number, kind: SpanKind = 'internal'): void {
  parent.child(name, { kind, startMs }).end(endMs)
}
