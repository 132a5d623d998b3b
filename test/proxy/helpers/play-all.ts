// Runs a table of hostile cases against the real proxy and holds it to what other VMs are promised: it runs, it has no fault, and its event loop is not held up.
import type { Test } from 'tap'
import { shareOfCommit } from '../../../setup/test/share-of-commit.ts'
import type { Arena } from './arena.ts'
import { MAX_STALL_SECONDS, stallDuring } from './stall.ts'

const BATCH = 40
const PARTS = 12

/** Runs every case with `one`, a batch at a time, and names the batch after which something was wrong. */
export async function playAll<C extends { readonly name: string }> (t: Test, arena: Arena, table: readonly C[], one: (item: C) => Promise<unknown>): Promise<void> {
  // All of a table takes half an hour.
  const cases = shareOfCommit(table, PARTS)
  for (let at = 0; at < cases.length; at += BATCH) {
    const batch = cases.slice(at, at + BATCH)
    let ended: string | undefined
    const stall = await stallDuring(arena.stage.proxy, async () => {
      for (const item of batch) {
        if (ended === undefined) await one(item)
        if (arena.ended() !== undefined) ended ??= `${item.name}: the proxy or a worker ended: ${arena.ended()}`
      }
    })
    if (ended !== undefined) {
      t.fail(ended)
      return
    }
    if (stall > MAX_STALL_SECONDS) t.fail(`the event loop was held up for ${stall} s in ${batch.map(({ name }) => name).join('; ')}`)
    if (await faultsOf(arena) > 0) {
      t.fail(`the proxy has a fault after ${batch.map(({ name }) => name).join('; ')}: ${arena.stage.proxy.output().slice(-3000)}`)
      return
    }
  }
  await arena.held(t)
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
