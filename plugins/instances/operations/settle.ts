// After a VM has ended: reads how it ended, stores that, and only then calls the instance Stopped.
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import type { Context } from '../context.ts'
import { exitOf, exitOfRefusal, exitWithoutReport } from '../guest/exit.ts'
import { lastWriteOf, unlessMissing } from '../folder/last-write.ts'
import { dropKept, dropMemory } from '../memory-image/files.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import { logOperation } from '../folder/operations-log.ts'
import { disconnectParts } from '../parts/all.ts'
import type { InstancePaths } from '../folder/paths.ts'
import type { ExitFacts, RecordPatch } from '../model/record.ts'
import { cleanLine, readReport, type ExitReport } from '../guest/report.ts'
import { stoppedState } from '../restart/policy.ts'
import { dropPending } from '../volumes/settle.ts'
import { hasLivedOn, putBack } from '../memory-image/keep.ts'
import { storeLater } from './store-later.ts'

/** Never rejects: what cannot be stored is stored later; what cannot be read is logged, and the next start of the server finds it again. */
export async function settle (context: Context, instance: LiveInstance, session: GuestSession, paths: InstancePaths): Promise<void> {
  const disconnected = disconnectParts(context, instance.record)
  try {
    if (await putBackUnproven(context, instance, session, paths)) return
    const patch = await endOf(instance, session, paths)
    // So that a restart policy which is set later takes the stop into account.
    const failure = await instance.saveFact(({ life }) => session.stoppedByHand ? { ...patch, life: { ...life, restart: stoppedState(life.restart) } } : patch)
    storeLater(context, instance, failure, 'the end of a VM')
    await dropPending(context, instance)
    // Only now: after a crash before this, the next start finds the VM ended and comes here again.
    await dropMemory(paths)
    await logOperation(paths.operations, `ended: ${patch.exit?.exitMessage ?? ''}`, context.log)
  } catch (error) {
    context.log.error({ err: error, instance: instance.id }, 'how a VM ended could not be read')
  } finally {
    await disconnected
    instance.settling = undefined
    instance.setSession(undefined)
  }
}

/** A VM that ends by itself right after its restore, while its program has not ended, counts as not restored: the kept copy of the image takes its place again. */
async function putBackUnproven (context: Context, instance: LiveInstance, session: GuestSession, paths: InstancePaths): Promise<boolean> {
  if (session.stopping || (await readReport(paths.report)).report !== undefined) return false
  // What was kept may still be there, also of a VM that lived on unwatched, as its files tell: it goes with the lock held, and not while a server ends.
  if (session.proven || await hasLivedOn(paths, instance.record.startedAt)) {
    await dropKept(paths)
    return false
  }
  const words = await lastLine(paths.vmm)
  return await putBack(context, instance, `its VM ended within a second of its restore${words === '' ? '' : ` (${words})`}`)
}

async function endOf (instance: LiveInstance, session: GuestSession, paths: InstancePaths): Promise<RecordPatch> {
  const { report, writtenAt } = await readReport(paths.report)
  const exit = session.refusal === undefined ? await exitBy(report, session, paths) : exitOfRefusal(session.refusal)
  return { handle: null, exit, stoppedAt: Math.max(Math.round(writtenAt ?? await endTime(session, paths)), instance.record.startedAt ?? 0) }
}

async function exitBy (report: ExitReport | undefined, session: GuestSession, paths: InstancePaths): Promise<ExitFacts> {
  if (report !== undefined) return exitOf(report)
  return exitWithoutReport(session.stopping ? 'stopped' : 'unexpected', await lastLine(paths.vmm))
}

// Without a report: now; or, when the server did not see the end, the time of the last write of any kind.
async function endTime (session: GuestSession, paths: InstancePaths): Promise<number> {
  return session.seenAlive ? Date.now() : await lastWriteOf(paths)
}

async function lastLine (path: string): Promise<string> {
  return await unlessMissing(async () => {
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      const { size } = await handle.stat()
      const buffer = Buffer.alloc(Math.min(size, 4096))
      await handle.read(buffer, 0, buffer.length, size - buffer.length)
      return cleanLine(buffer.toString('utf8').trimEnd().split('\n').at(-1) ?? '')
    } finally {
      await handle.close()
    }
  }, '')
}
