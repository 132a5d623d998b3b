// `berth ingress log`
import { parseJson } from '../api/json.ts'
import { events } from '../api/sse.ts'
import { path } from '../api/path.ts'
import { clean, cleanJson } from '../../core/clean-text.ts'
import { size } from '../output/values.ts'
import { writeAll } from '../output/write.ts'
import type { Run } from '../spec.ts'
import type { IngressLog } from '../views.ts'

type Entry = IngressLog['entries'][number]

export const run: Run = async (session, input) => {
  const api = await session.api()
  const place = path`/instances/${input.argument(0)}/ingress`
  // Connected before the list is read, so that nothing is missed in between.
  const stream = input.flag('follow') ? await api.stream('GET', `${place}/stream`, {}) : undefined
  const { entries } = await api.call<IngressLog>('GET', place, { query: { limit: input.integer('tail') } })
  await session.print(entries, { headings: ['TIME', 'CLIENT', 'REQUEST', 'STATUS', 'SENT', 'TOOK'], rows: entries.map(rowOf) })
  if (stream === undefined) return 0
  const shown = new Set(entries.map((entry) => JSON.stringify(entry)))
  for await (const { data } of events(stream, api.target)) {
    if (shown.delete(data)) continue
    await writeAll(process.stdout, session.format === 'table' ? `${clean(rowOf(parseJson(data)).join('  '))}\n` : `${cleanJson(data)}\n`)
  }
  return 0
}

function rowOf ({ time, client, method, host, path: where, status, bytes_out: sent, duration_ms: took }: Entry): string[] {
  return [time.slice(11, 23), client, `${method} ${host}${where}`, String(status), size(sent), `${took} ms`]
}
