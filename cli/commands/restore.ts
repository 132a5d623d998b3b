// `berth restore INSTANCE`; with a folder instead of an instance it is the server's own command (core/cli/catalogue.ts).
import { path } from '../api/path.ts'
import { forEach } from '../output/results.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  return await forEach(session, input.many(0), async (name) => await api.call('POST', path`/instances/${name}/restore`))
}
