// Runs a table of hostile cases against the real proxy and holds it to what other VMs are promised: it runs, it has no fault, and its event loop is not held up.
import type { Test } from 'tap'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { partOfCommit } from '../../helpers/share-of-commit.ts'
import { MAX_STALL_SECONDS, type Arena } from './arena.ts'

const BATCH = 40
/** A machine under load holds a process up by itself; what the proxy does is the same each time. */
const TRIES = 3
const PARTS = 12

/** Runs every case with `one`, a batch at a time, and names the batch after which something was wrong. */
export async function playAll<C extends { readonly name: string }> (t: Test, arena: Arena, table: readonly C[], one: (item: C) => Promise<unknown>): Promise<void> {
  const cases = shareOf(table)
  const own = monitorEventLoopDelay({ resolution: 10 })
  own.enable()
  for (let at = 0; at < cases.length; at += BATCH) {
    const batch = cases.slice(at, at + BATCH)
    let stall = Number.POSITIVE_INFINITY
    for (let tries = 0; tries < TRIES && stall > MAX_STALL_SECONDS; tries++) {
      await stallOf(arena)
      own.reset()
      for (const item of batch) {
        await one(item)
        if (arena.ended() !== undefined) {
          t.fail(`${item.name}: the proxy or a worker ended: ${arena.ended()}`)
          return
        }
      }
      // What holds this process up, too, is the machine.
      stall = Math.min(stall, await stallOf(arena) - own.max / 1e9)
    }
    if (stall > MAX_STALL_SECONDS) t.fail(`the event loop was held up for ${stall} s in ${batch.map(({ name }) => name).join('; ')}`)
    if (await faultsOf(arena) > 0) {
      t.fail(`the proxy has a fault after ${batch.map(({ name }) => name).join('; ')}: ${arena.stage.proxy.output().slice(-3000)}`)
      return
    }
  }
  own.disable()
  await arena.held(t)
}

/** A twelfth of a table, which is another one for another commit: all of them take half an hour. BERTH_HOSTILE=all plays them. */
function shareOf<C> (table: readonly C[]): readonly C[] {
  if (process.env['BERTH_HOSTILE'] === 'all') return table
  const part = partOfCommit(PARTS)
  return table.filter((_item, index) => index % PARTS === part)
}

/** The longest time for which an event loop was held up since the last call, in seconds: the parent's, or a worker's, where guests and origins are served. */
async function stallOf (arena: Arena): Promise<number> {
  const metrics = await metricsOf(arena)
  const workers = [...metrics.matchAll(/^berth_egress_worker_stall_seconds\{[^}]*\} (\S+)$/gm)].map(([, value]) => Number(value))
  if (workers.length === 0) throw new Error('there are no figures of workers')
  return Math.max(figure(metrics, /^nodejs_eventloop_lag_max_seconds (\S+)/m), ...workers)
}

async function faultsOf (arena: Arena): Promise<number> {
  return figure(await metricsOf(arena), /^berth_egress_exchange_faults_total (\S+)/m)
}

async function metricsOf (arena: Arena): Promise<string> {
  return (await arena.stage.proxy.call('GET', '/metrics')).body
}

function figure (metrics: string, pattern: RegExp): number {
  return Number(pattern.exec(metrics)?.[1])
}
