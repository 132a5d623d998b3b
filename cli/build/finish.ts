// Follows a build that was sent to its end. Ctrl-C cancels it on the server, too.
import type { Writable } from 'node:stream'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Build } from '../views.ts'
import { followBuild } from './follow.ts'

/** @param log receives the build's log */
export async function finishBuild (session: Session, api: Api, { id }: Build, log: Writable): Promise<Build> {
  try {
    await followBuild(api, id, { follow: true, output: log })
  } finally {
    // A new connection: Ctrl-C has ended the earlier one.
    if (session.interrupted.aborted) await api.call('DELETE', path`/builds/${id}`, { isUndo: true }).catch(() => undefined)
  }
  const ended = await api.call<Build>('GET', path`/builds/${id}`)
  if (ended.status !== 'ready') throw new Failure(`the build is ${ended.status}${ended.error == null ? '' : `: ${ended.error}`}`)
  return ended
}
