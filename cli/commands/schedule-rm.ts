// `berth snapshot schedule rm`
import { path } from '../api/path.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  await (await session.api()).call('DELETE', path`/instances/${input.argument(0)}/snapshot-schedule`)
  return 0
}
