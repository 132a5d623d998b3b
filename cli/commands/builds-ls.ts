// `berth builds ls`
import { printList } from '../output/list.ts'
import { age, shortId } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Build } from '../views.ts'

export const run: Run = async (session, input) => await printList(session, await (await session.api()).list<Build>('/builds', { tags: input.pairs('tag') }), {
  key: ({ id }) => id,
  columns: [
    ['ID', ({ id }) => shortId(id)], ['STATUS', ({ status }) => status], ['IMAGE', ({ image_ref: image }) => image ?? '-'],
    ['TOOK', ({ duration_ms: ms }) => ms == null ? '-' : `${(ms / 1000).toFixed(1)} s`], ['CREATED', ({ created_at: time }) => age(time)], ['ERROR', ({ error }) => error ?? '-']
  ]
})
