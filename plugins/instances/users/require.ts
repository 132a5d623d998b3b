// The user of an instance that is about to get a VM again.
import { isDuplicate } from '../../../core/db/transaction.ts'
import { identityOf, pathsIn, type Context } from '../context.ts'
import { HostSlotsExhausted } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { findUser } from './find.ts'
import { freeSlots } from './free-slots.ts'
import { takeBack } from './own-files.ts'

/** Sees to it that it has a user, and that its files are that user's. Its lock is held. @throws HostSlotsExhausted */
export async function requireUser (context: Context, instance: LiveInstance): Promise<void> {
  if (!context.separateUsers) return
  while (instance.record.slot === null && !await takeSlot(context, instance)) {
    if (!await findUser(context)) throw HostSlotsExhausted(context.settings.vmUserCount)
  }
  const [user, nobody] = [identityOf(context, instance.record), identityOf(context, { slot: null })]
  if (user !== undefined && nobody !== undefined) await takeBack(pathsIn(context, instance.id), nobody, user)
}

/** False when none is left. */
async function takeSlot (context: Context, instance: LiveInstance): Promise<boolean> {
  for (const slot of freeSlots(context)) {
    try {
      await instance.save({ slot })
      return true
    } catch (error) {
      // Another has taken it in between.
      if (!isDuplicate(error)) throw error
    }
  }
  return false
}
