// `berth push`
import { setTimeout as delay } from 'node:timers/promises'
import { path } from '../api/path.ts'
import { Failure, wrongUsage } from '../failure.ts'
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import { secret } from '../terminal/ask.ts'
import type { Push } from '../views.ts'

const EVERY_MS = 500

export const run: Run = async (session, input) => {
  const api = await session.api()
  const username = input.text('username')
  if (input.flag('passwordStdin') && username === undefined) throw wrongUsage('--password-stdin needs --username')
  const credentials = username === undefined ? undefined : { username, password: await secret(session, 'Password: ') }
  let push = await api.call<Push>('POST', '/pushes', { body: { image: input.argument(0), target: input.argument(1), ...input.flag('insecure') ? { insecure: true } : {}, credentials } })
  while (!input.flag('detach') && push.status !== 'pushed') {
    if (push.status === 'failed') throw new Failure(`${push.target}: ${push.error ?? 'the push failed'}`)
    session.progress.step(`${push.target}: ${push.status}`)
    await delay(EVERY_MS, undefined, { signal: session.interrupted })
    push = await api.call<Push>('GET', path`/pushes/${push.id}`)
  }
  session.progress.end()
  return await printMade(session, push)
}
