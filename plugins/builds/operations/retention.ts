// Limits the records and logs of finished builds.
import type { Context } from '../context.ts'

/** Removes the folder first and the row last, so that after a crash the row still shows what to do. Never rejects: a failed removal is repeated the next time. A clock that was set makes none too old for an hour. */
export async function removeOutdated ({ repository, files, settings, log, clock }: Context): Promise<void> {
  try {
    const before = clock.isBelievable() ? clock.now() - settings.keepMs : -Infinity
    for (const id of await repository.outdated(settings.keepFinished, before)) {
      await files.remove(id)
      await repository.remove(id)
    }
  } catch (error) {
    log.warn({ err: error }, 'outdated builds could not be removed')
  }
}
