// For how long hostile input held an event loop of the proxy up: what another VM would notice.
import { readFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Test } from 'tap'
import { processTree } from '../../helpers/process-tree.ts'
import type { TestProxy } from './proxy.ts'

/** A stall that another VM would notice. */
export const MAX_STALL_SECONDS = 0.2
/** A machine under load holds a process up by itself; what the proxy does is the same each time. */
const TRIES = 3

/** Runs `work`, again when an event loop of the proxy was held up meanwhile. @returns for how long it was at least, in seconds */
export async function stallDuring (proxy: TestProxy, work: () => Promise<void>): Promise<number> {
  const own = monitorEventLoopDelay({ resolution: 10 })
  own.enable()
  let stall = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < TRIES && stall > MAX_STALL_SECONDS; tries++) {
    await takeStall(proxy)
    const waited = waitedSeconds(proxy)
    own.reset()
    await work()
    // What holds this process up, too, is the machine, and so is what keeps the proxy waiting for a processor.
    stall = Math.min(stall, await takeStall(proxy) - own.max / 1e9 - (waitedSeconds(proxy) - waited))
  }
  own.disable()
  return stall
}

/** Asserts that it holds none up. */
export async function holdsNobodyUp (t: Test, proxy: TestProxy, name: string, work: () => Promise<void>): Promise<void> {
  const stall = await stallDuring(proxy, work)
  t.ok(stall <= MAX_STALL_SECONDS, `${name}: the event loop was held up for ${stall} s`)
}

/** For how long the main threads of the proxy's processes were ready to run and had no processor, all together (run delay of /proc/PID/schedstat). */
function waitedSeconds (proxy: TestProxy): number {
  return processTree(proxy.process.pid ?? 0).reduce((sum, pid) => {
    const [, nanoseconds = '0'] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')
    return sum + Number(nanoseconds) / 1e9
  }, 0)
}

/** The longest time for which an event loop was held up since the last call, in seconds: the parent's, or a worker's, where guests and origins are served. */
async function takeStall (proxy: TestProxy): Promise<number> {
  const { body } = await proxy.call('GET', '/metrics')
  const workers = [...body.matchAll(/^berth_egress_worker_stall_seconds\{[^}]*\} (\S+)$/gm)].map(([, value]) => Number(value))
  if (workers.length === 0) throw new Error('there are no figures of workers')
  return Math.max(Number(/^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(body)?.[1]), ...workers)
}
