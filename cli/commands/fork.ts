// `berth fork`
import { path } from '../api/path.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const targetState = input.text('targetState')
  const made = await api.call<Instance>('POST', path`/instances/${input.argument(0)}/fork`, { body: { name: input.argument(1), ...input.flag('fromRunning') ? { from_running: true } : {}, ...targetState === undefined ? {} : { target_state: targetState } } })
  return await printMade(session, made)
}
