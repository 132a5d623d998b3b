// `berth auto-standby hold`
import { path } from '../api/path.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  return await forEach(session, input.many(0), async (name) => await api.call('POST', path`/instances/${name}/auto-standby/hold`))
}
