// `berth create`
import { createBody } from '../create-body.ts'
import { printMade } from '../output/made.ts'
import { pullImage } from '../pull.ts'
import type { Run } from '../spec.ts'
import type { Instance } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const body = await createBody(input, session.environment)
  await pullImage(session, api, body.image)
  return await printMade(session, await api.call<Instance>('POST', '/instances', { body }))
}
