// `berth volume detach`
import { path } from '../api/path.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const instance = await api.call('DELETE', path`/instances/${input.argument(1)}/volumes/${input.argument(0)}`)
  if (session.format !== 'table') await session.print(instance)
  return 0
}
