// `berth plugins`
import { printList } from '../output/list.ts'
import type { Run } from '../spec.ts'
import type { PluginView } from '../views.ts'

export const run: Run = async (session) => await printList(session, await (await session.api()).call<PluginView[]>('GET', '/plugins'), {
  key: ({ id }) => id,
  columns: [['PLUGIN', ({ id }) => id], ['STATE', ({ state }) => state], ['WHY', ({ reason }) => reason ?? '']]
})
