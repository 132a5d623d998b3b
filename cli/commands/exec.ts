// `berth exec`
import { wrongUsage } from '../failure.ts'
import { executeHere } from '../exec/on-this-terminal.ts'
import { durationMs } from '../output/values.ts'
import type { Run } from '../spec.ts'

export const run: Run = async (session, input) => {
  const wait = input.text('wait')
  const waitMs = wait === undefined ? undefined : durationMs(wait)
  if (wait !== undefined && waitMs === undefined) throw wrongUsage(`--wait ${wait} is no duration`)
  const command = input.many(1)
  return await executeHere(session, await session.api(), {
    instance: input.argument(0),
    command,
    tty: input.flag('tty'),
    interactive: input.flag('interactive') || input.flag('tty'),
    env: input.pairs('env'),
    cwd: input.text('cwd'),
    user: input.text('user'),
    waitSeconds: waitMs === undefined ? undefined : Math.ceil(waitMs / 1000)
  })
}
