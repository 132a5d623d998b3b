// `berth stats`: the resources that instances use; on a terminal it is repeated.
import { setTimeout as delay } from 'node:timers/promises'
import { path } from '../api/path.ts'
import type { Api } from '../api/client.ts'
import { Refusal } from '../api/failures.ts'
import { size } from '../output/values.ts'
import { table } from '../output/table.ts'
import type { Session } from '../session.ts'
import type { Run } from '../spec.ts'
import type { Instance, Stats } from '../views.ts'

const EVERY_MS = 2000

export const run: Run = async (session, input) => {
  const api = await session.api()
  const named = input.many(0)
  const isLive = session.format === 'table' && process.stdout.isTTY && input.choice('stream') !== false
  let before = await sample(api, named)
  if (!isLive) {
    await session.print(before.stats, rowsOf(before, undefined))
    return 0
  }
  while (true) {
    await delay(EVERY_MS, undefined, { signal: session.interrupted })
    const now = await sample(api, named)
    show(session, rowsOf(now, before))
    before = now
  }
}

interface Sample { readonly at: number, readonly stats: readonly Stats[] }

async function sample (api: Api, named: readonly string[]): Promise<Sample> {
  const names = named.length > 0 ? named : (await api.list<Instance>('/instances', { state: 'Running' })).map(({ id }) => id)
  const stats: Stats[] = []
  for (const name of names) {
    try {
      stats.push(await api.call<Stats>('GET', path`/instances/${name}/stats`))
    } catch (error) {
      // An instance that was deleted meanwhile is missing from the next sample.
      if (!(error instanceof Refusal && error.status === 404 && named.length === 0)) throw error
    }
  }
  return { at: Date.now(), stats }
}

function rowsOf ({ at, stats }: Sample, before: Sample | undefined): { headings: string[], rows: string[][] } {
  return {
    headings: ['NAME', 'CPU', 'MEMORY', 'OF', 'RECEIVED', 'SENT'],
    rows: stats.map((own) => [own.instance_name, cpu(own, at, before), size(own.memory_rss_bytes), size(own.allocated_memory_bytes), size(own.network_rx_bytes), size(own.network_tx_bytes)])
  }
}

/** The share of one processor since the previous sample; without a previous sample, the total time used. */
function cpu (own: Stats, at: number, before: Sample | undefined): string {
  const last = before?.stats.find(({ instance_id: id }) => id === own.instance_id)
  if (before === undefined || last === undefined) return `${own.cpu_seconds.toFixed(1)} s`
  return `${Math.max(0, (own.cpu_seconds - last.cpu_seconds) / ((at - before.at) / 1000) * 100).toFixed(0)} %`
}

function show (session: Session, { headings, rows }: { headings: string[], rows: string[][] }): void {
  const lines = table(headings, rows, process.stdout.columns).slice(0, process.stdout.rows - 1)
  process.stdout.write('\u001b[H')
  for (const text of lines) session.line(`${text}\u001b[K`)
  process.stdout.write('\u001b[J')
}
