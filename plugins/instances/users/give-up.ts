// Users of instances at rest are for VMs that need them: an instance keeps its user until then, so that nothing has to change hands in the usual case.
import { compressLater } from '../compression/compress-image.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { readImage } from '../memory-image/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { volumesOf } from '../volumes/spec.ts'
import { giveAway } from './own-files.ts'

/** Frees the user of the instance that has been at rest for longest. False when there is none that could do without. */
export async function giveUpUser (context: Context): Promise<boolean> {
  const tried = new Set<LiveInstance>()
  for (;;) {
    const instance = longestAtRest(context, tried)
    if (instance === undefined) return false
    tried.add(instance)
    if (await context.locks.hold(instance.id, async () => await giveUp(context, instance))) return true
  }
}

/** Without sorting: there may be many thousands, and one is wanted. */
function longestAtRest (context: Context, tried: ReadonlySet<LiveInstance>): LiveInstance | undefined {
  let found: LiveInstance | undefined
  for (const instance of context.instances.all()) {
    if (found !== undefined && restingSince(instance) >= restingSince(found)) continue
    // Nobody is waited for: who holds this lock may need a user, too.
    if (canGiveUp(context, instance) && !tried.has(instance) && !context.locks.isUsed(instance.id)) found = instance
  }
  return found
}

/** Whether nothing runs as its user, nor will without a start. One that is Unknown may have a VM that no row knows, or files on their way to it. The disks of volumes belong to the user of the VM that has written them, and stay its own. */
function canGiveUp (context: Context, { id, state, deleted, settling, session, record: { slot, status, handle, spec } }: LiveInstance): boolean {
  return slot !== null && status === 'active' && state !== 'Unknown' && !deleted && handle === null && session === undefined && settling === undefined && volumesOf(spec).length === 0 && context.kept.find(id) === undefined
}

function restingSince ({ record: { standbyAt, stoppedAt, createdAt } }: LiveInstance): number {
  return standbyAt ?? stoppedAt ?? createdAt
}

async function giveUp (context: Context, instance: LiveInstance): Promise<boolean> {
  const { id } = instance
  const user = identityOf(context, instance.record)
  const paths = pathsIn(context, id)
  try {
    await context.behind.over(id)
    await context.kept.end(id, 'room')
    await context.compressions.cancel(id)
    if (user === undefined || !canGiveUp(context, instance)) return false
    await giveAway(paths, user, identityOf(context, { slot: null }) ?? user)
    await instance.save({ slot: null })
    return true
  } catch (error) {
    // What was given away is taken back by its next start.
    context.log.error({ err: error, instance: id }, 'an instance at rest could not do without its user')
    return false
  } finally {
    const stored = instance.record.standbyAt === null ? undefined : await readImage(paths, 'whole').catch(() => undefined)
    if (stored !== undefined) compressLater(context, instance, stored)
  }
}
