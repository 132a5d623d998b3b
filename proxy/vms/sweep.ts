// Checks everything that is under way at intervals and ends what does not move: this is cheaper than a timer for each request.
import type { Limits } from '../config/schema.ts'
import { forEachApart } from './each.ts'
import type { Exchange } from './exchange.ts'
import type { Services } from './services.ts'
import type { VmTable } from './table.ts'

const INTERVAL_MS = 5_000

/** Starts the checks; the returned function stops them. */
export function startSweep (table: VmTable, services: Services): () => void {
  const onFault = (error: unknown): void => services.log.error('what does not move could not be ended', error)
  /** A request that cannot be ended in order is still finished: otherwise every sweep would check it again. */
  const giveUp = (error: unknown, exchange: Exchange): void => {
    onFault(error)
    exchange.socket?.destroy()
    exchange.finish('upstream_failed')
  }
  const timer = setInterval(() => {
    const nowMs = performance.now()
    for (const vm of table.all()) {
      forEachApart(vm.exchanges, exchange => judge(exchange, nowMs, services), giveUp)
      forEachApart([vm.origins], origins => origins.closeIdle(nowMs), onFault)
    }
  }, Math.min(INTERVAL_MS, services.limits.idleMs, services.limits.originIdleMs, services.limits.bodyGraceMs))
  timer.unref()
  return () => clearInterval(timer)
}

function judge (exchange: Exchange, nowMs: number, { limits }: Services): void {
  const progress = exchange.bytesIn + exchange.bytesOut
  if (progress !== exchange.progress) {
    exchange.progress = progress
    exchange.progressedMs = nowMs
  }
  const idleMs = exchange.subject.protocol === 'websocket' ? limits.tunnelIdleMs : limits.idleMs
  if (nowMs - exchange.progressedMs > idleMs) exchange.abort('upstream_timeout')
  else if (isSlow(exchange, nowMs, limits)) exchange.abort('slow_body')
}

/** A slow start is no attack, so there is a grace period. Only a body of announced length counts as slow: one without may be a stream whose sender has nothing to say. */
function isSlow (exchange: Exchange, nowMs: number, limits: Limits): boolean {
  if (exchange.status !== undefined || exchange.bytesIn >= exchange.expectedBytes) return false
  const elapsedMs = nowMs - exchange.startedMs
  return elapsedMs > limits.bodyGraceMs && exchange.bytesIn / elapsedMs * 1000 < limits.bodyBytesPerSecond
}
