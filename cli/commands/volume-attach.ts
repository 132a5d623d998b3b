// `berth volume attach`
import { path } from '../api/path.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const instance = await api.call('POST', path`/instances/${input.argument(1)}/volumes/${input.argument(0)}`, { body: { mount_path: input.argument(2), ...input.flag('readonly') ? { readonly: true } : {} } })
  if (session.format !== 'table') await session.print(instance)
  return 0
}
