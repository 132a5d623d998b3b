// Turns the failures of a full disk into one error that says so.
import { isDiskFull } from '../../../core/fs/disk-full.ts'
import { DiskFull } from '../errors.ts'

/** The error to answer with: one that says that the disk is full when that is the cause, else `error` itself. */
export function namingFullDisk (call: string, error: unknown): unknown {
  return isDiskFull(error) ? DiskFull.from(error, call) : error
}
