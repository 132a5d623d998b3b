// `berth snapshot fork`
import { path } from '../api/path.ts'
import { envOf } from '../create-body.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const env = await envOf(input, session.environment)
  const body = { name: input.argument(1), target_state: input.text('targetState'), target_hypervisor: input.text('targetHypervisor'), ...Object.keys(env).length === 0 ? {} : { env } }
  return await printMade(session, await api.call<Instance>('POST', path`/snapshots/${input.argument(0)}/fork`, { body }))
}
