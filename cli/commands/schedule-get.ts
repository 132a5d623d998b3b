// `berth snapshot schedule get`
import { path } from '../api/path.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  await session.print(await (await session.api()).call('GET', path`/instances/${input.argument(0)}/snapshot-schedule`))
  return 0
}
