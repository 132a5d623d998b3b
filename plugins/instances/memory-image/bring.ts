// Brings the memory of an image to the path that a VM is to use: copies the file, expands a compressed one, or puts the changes into a copy of their base.
import { chmod, lstat, rm } from 'node:fs/promises'
import { mergeChanges } from '../../../core/library/vmm/private-memory.ts'
import { expandMemory } from '../../../core/library/compressed-memory.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import type { Context } from '../context.ts'
import type { StoredMemory } from '../contract.ts'

/** Resolves with the size of the memory in bytes, holes included. `to` must not exist; a failure leaves nothing of it. Not synced. */
export async function bringMemory (context: Pick<Context, 'commands'>, { path, algorithm, changes }: StoredMemory, to: string): Promise<number> {
  if (algorithm !== undefined) return await expandMemory(context.commands, path, to, algorithm)
  await copySparse(context.commands, path, to)
  const bytes = (await lstat(to)).size
  if (changes === undefined) return bytes
  try {
    // A base can be written by nobody, and a copy that shares its blocks is made like it.
    await chmod(to, 0o600)
    await mergeChanges(context.commands, { bytes, changes }, to)
  } catch (error) {
    await rm(to, { force: true })
    throw error
  }
  return bytes
}
