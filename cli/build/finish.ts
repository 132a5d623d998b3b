// A build that was sent, followed to its end. Ctrl-C ends it on the server, too.
import type { Writable } from 'node:stream'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Build } from '../views.ts'
import { followBuild } from './follow.ts'

/** @param log where its log goes */
export async function finishBuild (session: Session, api: Api, { id }: Build, log: Writable): Promise<Build> {
  try {
    await followBuild(api, id, true, log)
  } finally {
    // The connection of before has ended with Ctrl-C.
    if (session.interrupted.aborted) await api.call('DELETE', path`/builds/${id}`, { isUndo: true }).catch(() => undefined)
  }
  const ended = await api.call<Build>('GET', path`/builds/${id}`)
  if (ended.status !== 'ready') throw new Failure(`the build is ${ended.status}${ended.error == null ? '' : `: ${ended.error}`}`)
  return ended
}
