// `berth egress`: the audit log of an instance.
import { setTimeout as delay } from 'node:timers/promises'
import { path } from '../api/path.ts'
import { wrongUsage } from '../failure.ts'
import { table } from '../output/table.ts'
import { formatted } from '../output/format.ts'
import type { Run } from '../spec.ts'
import type { EgressLog } from '../views.ts'

const EVERY_MS = 1000
const PAGE = 1000

export const run: Run = async (session, input) => {
  const api = await session.api()
  const address = path`/instances/${input.argument(0)}/egress`
  const follow = input.flag('follow')
  const tail = input.integer('tail') ?? 100
  if (tail < 0) throw wrongUsage(`--tail: ${tail} is less than 0`)
  let after = 0
  let entries: EgressLog['entries'] = []
  for (let more = true; more;) {
    const page = await api.call<EgressLog>('GET', address, { query: { after, limit: PAGE } })
    const known = [...entries, ...page.entries]
    entries = known.slice(Math.max(0, known.length - tail))
    more = page.entries.length === PAGE
    after = page.next
  }
  await session.print(entries, { headings: HEADINGS, rows: entries.map(row) })
  if (!follow) return 0
  while (true) {
    await delay(EVERY_MS, undefined, { signal: session.interrupted })
    const page = await api.call<EgressLog>('GET', address, { query: { after, limit: PAGE } })
    after = page.next
    for (const entry of page.entries) session.line(session.format === 'table' ? table(row(entry), [])[0] ?? '' : await formatted(entry, session.format === 'json' ? 'jsonl' : session.format))
  }
}

const HEADINGS = ['TIME', 'REQUEST', 'STATUS', 'CREDENTIALS', 'REASON']

function row ({ time, protocol, host, port, method, path: where, status, injected, reason }: EgressLog['entries'][number]): string[] {
  return [time.slice(11, 23), `${method ?? protocol} ${host}:${port}${where ?? ''}`, status === undefined ? '-' : String(status), injected.join(', ') || '-', reason ?? '-']
}
