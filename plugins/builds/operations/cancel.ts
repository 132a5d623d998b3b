// Cancels an unfinished build in any state.
import { NotFound } from '../../../core/errors/common.ts'
import type { Context } from '../context.ts'
import { BuildFinished } from '../errors.ts'
import { isFinal } from '../record.ts'
import { finish } from './finish.ts'
import { Ended } from './run.ts'

/** Resolves when nothing of it runs any more. @throws not_found, invalid_state when it is finished, or has finished meanwhile */
export async function cancel (context: Context, id: string): Promise<void> {
  const { live, queue, repository, admission } = context
  await admission(async () => {})
  const build = live.get(id)
  if (build !== undefined) {
    if (queue.take(id)) await finish(context, build, { status: 'cancelled' })
    else build.controller.abort(new Ended('cancelled', 'the build was cancelled'))
    await build.ended
  }
  const record = await repository.find(id)
  if (record === undefined) throw NotFound('build', id)
  if (build !== undefined && record.status === 'cancelled') return
  if (!isFinal(record.status)) throw new Error(`build ${id} is ${record.status}, and nobody works on it`)
  throw BuildFinished(id, record.status)
}
