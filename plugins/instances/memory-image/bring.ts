// Brings the memory of an image to where a VM is to use it: a copy of the file, or the file that a compressed one expands to.
import { lstat } from 'node:fs/promises'
import { expandMemory } from '../../../core/library/compressed-memory.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'
import type { Context } from '../context.ts'
import type { StoredMemory } from '../contract.ts'

/** Resolves with its bytes, holes included. `to` must not exist; nothing is left of it when it fails. Not synced. */
export async function bringMemory (context: Pick<Context, 'commands'>, { path, algorithm }: StoredMemory, to: string): Promise<number> {
  if (algorithm !== undefined) return await expandMemory(context.commands, path, to, algorithm)
  await copySparse(context.commands, path, to)
  return (await lstat(to)).size
}
