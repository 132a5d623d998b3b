// `berth snapshot create`
import { path } from '../api/path.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Instance, Snapshot } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const instance = await api.call<Instance>('GET', path`/instances/${input.argument(0)}`)
  const kind = input.text('kind') ?? (instance.state === 'Stopped' ? 'Stopped' : 'Standby')
  return await printMade(session, await api.call<Snapshot>('POST', path`/instances/${instance.id}/snapshots`, { body: { kind, name: input.text('name'), tags: input.pairs('tag') } }))
}
