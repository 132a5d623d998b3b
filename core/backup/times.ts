// Gives files that were put back the times that they had, to the nanosecond: a memory image knows by its file's time whether a VM has run on it.
import { join } from 'node:path'
import type { HostCommands } from '../contracts/services.ts'
import type { FileEntry } from './manifest.ts'

const MS_NS = 1_000_000n

export async function setTimes (commands: HostCommands, dataDir: string, files: readonly FileEntry[]): Promise<void> {
  if (files.length === 0) return
  const pairs = files.map((file) => [`--date=@${secondsOf(file)}`, join(dataDir, file.path)])
  // Node's own call takes a number, which has not enough digits; and one command for all, as there may be very many.
  await commands.run('xargs', ['--null', '--max-args=2', 'touch', '--no-create'], { input: pairs.flat().map((text) => `${text}\0`).join('') })
}

/** Backups of earlier versions have whole milliseconds. */
function secondsOf ({ mtimeNs, mtimeMs = 0 }: FileEntry): string {
  const ns = mtimeNs === undefined ? BigInt(Math.max(0, Math.trunc(mtimeMs))) * MS_NS : BigInt(mtimeNs)
  const digits = String(ns).padStart(10, '0')
  return `${digits.slice(0, -9)}.${digits.slice(-9)}`
}
