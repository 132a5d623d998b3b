// `berth fork`
import { path } from '../api/path.ts'
import { envOf } from '../create-body.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const targetState = input.text('targetState')
  const env = await envOf(input, session.environment)
  const made = await api.call<Instance>('POST', path`/instances/${input.argument(0)}/fork`, { body: { name: input.argument(1), ...input.flag('fromRunning') ? { from_running: true } : {}, ...targetState === undefined ? {} : { target_state: targetState }, ...Object.keys(env).length === 0 ? {} : { env } } })
  return await printMade(session, made)
}
