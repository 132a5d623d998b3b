// Frees a user for a VM, when all are taken.
import type { Context } from '../context.ts'
import { giveUpUser } from './give-up.ts'

/** False when every user has a VM that somebody asked for. VMs that the server keeps ready, and those that it keeps in standby, must not take what an instance needs. */
export async function findUser (context: Context): Promise<boolean> {
  return await giveUpUser(context) || await context.spares.giveUpOne() || (await context.kept.endOldest('room') && await giveUpUser(context))
}
