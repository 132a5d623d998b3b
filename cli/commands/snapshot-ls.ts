// `berth snapshot ls`
import { printList } from '../output/list.ts'
import { age, shortId, size } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Snapshot } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const snapshots = await api.list<Snapshot>('/snapshots', { source_instance_id: input.text('instance'), name: input.text('name'), tags: input.pairs('tag') })
  return await printList(session, snapshots, {
    key: ({ id }) => id,
    columns: [
      ['ID', ({ id }) => shortId(id)], ['NAME', ({ name }) => name ?? '-'], ['KIND', ({ kind }) => kind], ['INSTANCE', ({ source_instance_name: name }) => name],
      ['SIZE', ({ size_bytes: bytes }) => size(bytes)], ['CREATED', ({ created_at: time }) => age(time)]
    ]
  })
}
