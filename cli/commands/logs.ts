// `berth logs`: lines as the program wrote them.
import { parseJson } from '../api/json.ts'
import { events } from '../api/sse.ts'
import { path } from '../api/path.ts'
import { writeAll } from '../output/write.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const answer = await api.stream('GET', path`/instances/${input.argument(0)}/logs`, { query: { follow: input.flag('follow'), tail: input.integer('tail'), source: input.text('source') } })
  for await (const { data } of events(answer, api.target)) await writeAll(process.stdout, `${String(parseJson(data))}\n`)
  return 0
}
