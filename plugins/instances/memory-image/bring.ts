// Brings the memory of an image to the path that a VM is to use: copies the file, or expands a compressed one.
import { lstat } from 'node:fs/promises'
import { expandMemory } from '../../../core/library/compressed-memory.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import type { Context } from '../context.ts'
import type { StoredMemory } from '../contract.ts'

/** Resolves with the size of the memory in bytes, holes included. `to` must not exist; a failure leaves nothing of it. Not synced. */
export async function bringMemory (context: Pick<Context, 'commands'>, { path, algorithm }: StoredMemory, to: string): Promise<number> {
  if (algorithm !== undefined) return await expandMemory(context.commands, path, to, algorithm)
  await copySparse(context.commands, path, to)
  return (await lstat(to)).size
}
