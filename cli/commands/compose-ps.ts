// `berth compose ps`
import { nameOf } from '../compose/name-of.ts'
import { ownedInstances } from '../compose/owned.ts'
import { printList } from '../output/list.ts'
import { age } from '../output/values.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const owned = await ownedInstances(await session.api(), await nameOf(session, input))
  // For programs: the API's own answers, as with `ps`.
  if (session.format !== 'table' && !session.quiet) return await session.print(owned.map(({ instance }) => instance)).then(() => 0)
  return await printList(session, owned, {
    key: ({ instance }) => instance.name,
    columns: [
      ['SERVICE', ({ service }) => service], ['INSTANCE', ({ instance }) => instance.name], ['STATE', ({ instance }) => instance.state], ['HEALTH', ({ instance }) => instance.health_status?.status ?? '-'],
      ['IMAGE', ({ instance }) => instance.image], ['ADDRESS', ({ instance }) => instance.network?.ip ?? '-'], ['CREATED', ({ instance }) => age(instance.created_at)]
    ]
  })
}
