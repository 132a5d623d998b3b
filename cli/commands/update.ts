// `berth update`
import { path } from '../api/path.ts'
import { envOf } from '../create-body.ts'
import { wrongUsage } from '../failure.ts'
import { lifeOf } from '../life.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const env = await envOf(input, session.environment)
  const body = { ...Object.keys(env).length === 0 ? {} : { env }, ...lifeOf(input) }
  if (Object.keys(body).length === 0) throw wrongUsage('say what is to be changed', 'berth update --help')
  const instance = await (await session.api()).call<Instance>('PATCH', path`/instances/${input.argument(0)}`, { body })
  if (session.format === 'table') session.line(instance.name)
  else await session.print(instance)
  return 0
}
