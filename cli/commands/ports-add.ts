// `berth ports add`
import { path } from '../api/path.ts'
import { printEach } from '../output/results.ts'
import { portOf, portText } from '../publish.ts'
import type { Run } from '../spec.ts'
import type { PublishedPort } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const wanted = input.many(1).map((text) => portOf(text, 'port'))
  return await printEach(session, wanted, async (body) => await api.call<PublishedPort>('POST', path`/instances/${input.argument(0)}/ports`, { body }), session.quiet ? ({ id }) => id : portText)
}
