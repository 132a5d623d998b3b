// `berth key ls`
import { printList } from '../output/list.ts'
import { age, shortId } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Key } from '../views.ts'

export const run: Run = async (session) => await printList(session, await (await session.api()).list<Key>('/keys'), {
  key: ({ id }) => id,
  columns: [
    ['ID', ({ id }) => shortId(id)], ['NAME', ({ name }) => name], ['SCOPES', ({ scopes }) => scopes.join(', ')], ['STATUS', ({ status }) => status],
    ['EXPIRES', ({ expires_at: time }) => age(time)], ['LAST USED', ({ last_used_at: time }) => age(time)], ['CREATED', ({ created_at: time }) => age(time)]
  ]
})
