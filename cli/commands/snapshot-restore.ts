// `berth snapshot restore`
import { path } from '../api/path.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  return await printMade(session, await api.call<Instance>('POST', path`/instances/${input.argument(0)}/snapshots/${input.argument(1)}/restore`, { body: { target_state: input.text('targetState') } }))
}
