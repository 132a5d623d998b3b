// Turns the failures of a full disk into one error that says so.
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import type { BaseContext } from '../context.ts'
import { DiskFull } from '../errors.ts'

/** The error to answer with: one that says that the disk is full when that is the cause, else `error` itself. */
export function namingFullDisk (call: string, error: unknown): unknown {
  return isDiskFull(error) ? DiskFull.from(error, call) : error
}

/** For what makes an instance, before it has a row: where room is short, rows that come and go take what is kept for those that are deleted. @throws insufficient_resources */
export async function requireDisk ({ disk }: Pick<BaseContext, 'disk'>, call: string): Promise<void> {
  await disk.check().catch((error: unknown) => { throw namingFullDisk(call, error) })
}
