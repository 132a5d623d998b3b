// Copies on the disk of the data folder, of which stays free what must: one that took the last of it would stop every VM of the host that writes.
import { withRoom } from '../../../core/fs/with-room.ts'
import { commandsUntil } from '../../../core/process/commands-until.ts'
import type { Context } from '../context.ts'

/** Does work whose host commands, and signal, end when the disk runs short. @throws DiskShort */
export async function copyWithRoom<T> (context: Context, work: (context: Context, signal: AbortSignal) => Promise<T>): Promise<T> {
  return await withRoom(context.disk, [], async (signal) => await work({ ...context, commands: commandsUntil(context.commands, signal) }, signal))
}
