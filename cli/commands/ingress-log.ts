// `berth ingress log`
import { path } from '../api/path.ts'
import { size } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { IngressLog } from '../views.ts'

export const run: Run = async (session, input) => {
  const { entries } = await (await session.api()).call<IngressLog>('GET', path`/instances/${input.argument(0)}/ingress`, { query: { limit: input.integer('tail') } })
  await session.print(entries, {
    headings: ['TIME', 'CLIENT', 'REQUEST', 'STATUS', 'SENT', 'TOOK'],
    rows: entries.map(({ time, client, method, host, path: where, status, bytes_out: sent, duration_ms: took }) => [time.slice(11, 23), client, `${method} ${host}${where}`, String(status), size(sent), `${took} ms`])
  })
  return 0
}
