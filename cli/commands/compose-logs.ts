// `berth compose logs`: what the services print, each line with the service's name.
import type { Api } from '../api/client.ts'
import { parseJson } from '../api/json.ts'
import { path } from '../api/path.ts'
import { events } from '../api/sse.ts'
import { nameOf } from '../compose/name-of.ts'
import { ownedInstances, type OwnedInstance } from '../compose/owned.ts'
import { wrongUsage } from '../failure.ts'
import { clean } from '../../core/clean-text.ts'
import { writeAll } from '../output/write.ts'
import type { Query } from '../api/path.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const project = await nameOf(session, input)
  const api = await session.api()
  const owned = await ownedInstances(api, project)
  const named = input.many(0)
  for (const name of named) if (!owned.some(({ service }) => service === name)) throw wrongUsage(`${project} has no service ${name} here`)
  const shown = owned.filter(({ service }) => named.length === 0 || named.includes(service))
  const width = Math.max(0, ...shown.map(({ service }) => service.length))
  const query = { follow: input.flag('follow'), tail: input.integer('tail') }
  const show = async (each: OwnedInstance): Promise<void> => await printLines(api, each, width, query)
  if (input.flag('follow')) await Promise.all(shown.map(show))
  else for (const each of shown) await show(each)
  return 0
}

async function printLines (api: Api, { service, instance }: OwnedInstance, width: number, query: Query): Promise<void> {
  const answer = await api.stream('GET', path`/instances/${instance.id}/logs`, { query })
  for await (const { data } of events(answer, api.target)) await writeAll(process.stdout, `${clean(service).padEnd(width)} | ${String(parseJson(data))}\n`)
}
