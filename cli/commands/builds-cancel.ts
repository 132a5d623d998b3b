// `berth builds cancel`
import { path } from '../api/path.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  return await forEach(session, input.many(0), async (name) => await api.call('DELETE', path`/builds/${name}`))
}
