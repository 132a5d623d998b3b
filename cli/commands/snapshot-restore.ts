// `berth snapshot restore`
import { path } from '../api/path.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import { confirmed } from '../terminal/ask.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const [instance, snapshot] = [input.argument(0), input.argument(1)]
  if (!await confirmed(session, `Put ${instance} back to ${snapshot}? What it has on its disk and in memory now is lost.`)) return 0
  return await printMade(session, await api.call<Instance>('POST', path`/instances/${instance}/snapshots/${snapshot}/restore`, { body: { target_state: input.text('targetState') } }))
}
