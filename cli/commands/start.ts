// `berth start`
import { path } from '../api/path.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const entrypoint = input.list('entrypoint')
  const cmd = input.list('cmd')
  const body = { ...entrypoint.length === 0 ? {} : { entrypoint }, ...cmd.length === 0 ? {} : { cmd } }
  return await forEach(session, input.many(0), async (name) => await api.call('POST', path`/instances/${name}/start`, { body }))
}
