// `berth snapshot schedule rm`
import { path } from '../api/path.ts'
import type { Run } from '../spec.ts'
import { confirmed } from '../terminal/ask.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  const instance = input.argument(0)
  if (await confirmed(session, `End the schedule of ${instance}?`)) await api.call('DELETE', path`/instances/${instance}/snapshot-schedule`)
  return 0
}
