// `berth ps`
import type { Api } from '../api/client.ts'
import { Refusal } from '../api/failures.ts'
import { printList } from '../output/list.ts'
import { age, shortId } from '../output/values.ts'
import { portText } from '../publish.ts'
import type { Run } from '../spec.ts'
import type { Instance, PublishedPort } from '../views.ts'

const RESTING = ['Stopped', 'Shutdown']

export const run: Run = async (session, input) => {
  const api = await session.api()
  const state = input.text('state')
  const all = await api.list<Instance>('/instances', { state, tags: input.pairs('tag') })
  const ports = session.format === 'table' && !session.quiet ? await publishedPorts(api) : new Map<string, string[]>()
  const shown = input.flag('all') || state !== undefined ? all : all.filter((instance) => !RESTING.includes(instance.state))
  return await printList(session, shown, {
    key: ({ id }) => id,
    columns: [
      ['ID', ({ id }) => shortId(id)], ['NAME', ({ name }) => name], ['IMAGE', ({ image }) => image], ['STATE', stateText],
      ['ADDRESS', ({ network }) => network?.ip ?? '-'], ['PORTS', ({ id }) => ports.get(id)?.join(', ') ?? '-'], ['CREATED', ({ created_at: time }) => age(time)]
    ]
  })
}

/** The published ports of each instance, as people write them. A server without the plugin has none. */
async function publishedPorts (api: Api): Promise<Map<string, string[]>> {
  const byInstance = new Map<string, string[]>()
  const all = await api.list<PublishedPort>('/ports').catch((error: unknown) => {
    if (error instanceof Refusal && (error.status === 404 || error.status === 501)) return []
    throw error
  })
  for (const port of all) byInstance.set(port.instance_id, [...byInstance.get(port.instance_id) ?? [], portText(port)])
  return byInstance
}

function stateText ({ state, exit_code: code }: Instance): string {
  return state === 'Stopped' && code != null ? `${state} (${code})` : state
}
