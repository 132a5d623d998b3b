// Keeps the records and logs of builds that are over within bounds.
import type { Context } from '../context.ts'

/** Removes the folder first and the row last, so that a crash leaves something to go on from. Never rejects: what fails is tried again the next time. */
export async function removeOutdated ({ repository, files, settings, log, clock }: Context): Promise<void> {
  try {
    for (const id of await repository.outdated(settings.keepFinished, clock() - settings.keepMs)) {
      await files.remove(id)
      await repository.remove(id)
    }
  } catch (error) {
    log.warn({ err: error }, 'outdated builds could not be removed')
  }
}
