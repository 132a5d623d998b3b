// `berth webhook ls`
import { printList } from '../output/list.ts'
import { age, shortId } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Webhook } from '../views.ts'

export const run: Run = async (session) => await printList(session, await (await session.api()).list<Webhook>('/webhooks'), {
  key: ({ id }) => id,
  columns: [
    ['ID', ({ id }) => shortId(id)], ['URL', ({ url }) => url], ['STATUS', ({ status, enabled }) => enabled ? status : 'disabled'], ['LAST DELIVERY', ({ last_delivery: last }) => age(last?.delivered_at ?? null)],
    ['FAILED', ({ failed_attempts: count }) => String(count)], ['ERROR', ({ last_error: error }) => error?.message ?? '-'], ['CREATED', ({ created_at: time }) => age(time)]
  ]
})
