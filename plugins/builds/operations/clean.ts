// Removes what builds that are over have left on this host: VMs and disks that could not be removed at their end.
import { laterOnce } from '../../../core/jobs/until-done.ts'
import type { Context } from '../context.ts'

/** To be called when something of a build could not be removed: that is tried again until it is gone. */
export function cleanLater ({ later, runner, closing, log }: Context, id: string): void {
  laterOnce(later, `remains of build ${id}`, async () => {
    await runner.clean(id).catch((error: unknown) => {
      log.warn({ err: error, build: id }, 'something of a build is still there; it is tried again')
      throw error
    })
  }, closing.signal)
}

/** For the start: what an earlier server left of builds that are over. What cannot be removed at once is removed later. */
export async function cleanRemains (context: Context): Promise<void> {
  const { runner, live, log } = context
  for (const id of (await runner.remains()).filter((each) => !live.has(each))) {
    try {
      await runner.clean(id)
    } catch (error) {
      log.error({ err: error, build: id }, 'what a build of an earlier server has left could not be removed; it is tried again')
      cleanLater(context, id)
    }
  }
}
