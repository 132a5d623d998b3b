// Follows the log of a build.
import type { Writable } from 'node:stream'
import type { Api } from '../api/client.ts'
import { parseJson } from '../api/json.ts'
import { path } from '../api/path.ts'
import { events } from '../api/sse.ts'
import { writeAll } from '../output/write.ts'

type BuildEvent = { readonly type: 'log', readonly content: string } | { readonly type: 'status', readonly status: string } | { readonly type: 'heartbeat' }

/** Returns the last status that was reported. */
export async function followBuild (api: Api, id: string, { follow, output }: { readonly follow: boolean, readonly output: Writable }): Promise<string | undefined> {
  const answer = await api.stream('GET', path`/builds/${id}/events`, { query: { follow } })
  let status: string | undefined
  for await (const { data } of events(answer, api.target)) {
    const event = parseJson<BuildEvent>(data)
    if (event.type === 'log') await writeAll(output, event.content.endsWith('\n') ? event.content : `${event.content}\n`)
    else if (event.type === 'status') status = event.status
  }
  return status
}
