// `berth volume ls`
import { printList } from '../output/list.ts'
import { age, shortId } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Volume } from '../views.ts'

export const run: Run = async (session, input) => await printList(session, await (await session.api()).list<Volume>('/volumes', { tags: input.pairs('tag') }), {
  key: ({ id }) => id,
  columns: [
    ['ID', ({ id }) => shortId(id)], ['NAME', ({ name }) => name], ['SIZE', ({ size_gb: gb }) => `${gb} GiB`],
    ['ATTACHED TO', ({ attachments = [] }) => attachments.map(({ instance_id: id, mount_path: where }) => `${shortId(id)}:${where}`).join(', ') || '-'], ['CREATED', ({ created_at: time }) => age(time)]
  ]
})
