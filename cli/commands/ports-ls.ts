// `berth ports ls`
import { path } from '../api/path.ts'
import { printList } from '../output/list.ts'
import { age, shortId } from '../output/values.ts'
import { portText } from '../publish.ts'
import type { Run } from '../spec.ts'
import type { Instance, PublishedPort } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const instance = input.optionalArgument(0)
  const ports = await api.list<PublishedPort>(instance === undefined ? '/ports' : path`/instances/${instance}/ports`)
  const names = session.format === 'table' && !session.quiet ? new Map((await api.list<Instance>('/instances')).map(({ id, name }) => [id, name])) : new Map<string, string>()
  return await printList(session, ports, {
    key: ({ id }) => id,
    columns: [
      ['ID', ({ id }) => shortId(id)], ['INSTANCE', ({ instance_id: id }) => names.get(id) ?? shortId(id)], ['PORT', portText], ['WAY', ({ way, problem }) => problem ?? way], ['CREATED', ({ created_at: time }) => age(time)]
    ]
  })
}
