// `berth builds logs`
import { followBuild } from '../build/follow.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  await followBuild(api, input.argument(0), { follow: input.flag('follow'), output: process.stdout })
  return 0
}
