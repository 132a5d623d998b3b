// The log of what the server did with one instance: a line per operation, with time, outcome and duration.
import { constants } from 'node:fs'
import { open, rename } from 'node:fs/promises'
import type { Logger } from '../../../core/contracts/services.ts'
import { cleanLine } from '../guest/report.ts'
import { rotatedPath } from './paths.ts'

const MAX_BYTES = 2 ** 20
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK

/** Adds one line. A log that cannot be written stops no operation. */
export async function logOperation (path: string, text: string, log: Logger): Promise<void> {
  try {
    const handle = await open(path, FLAGS, 0o600)
    let size
    try {
      await handle.appendFile(`${new Date().toISOString()} ${cleanLine(text)}\n`)
      size = (await handle.stat()).size
    } finally {
      await handle.close()
    }
    if (size > MAX_BYTES) await rename(path, rotatedPath(path))
  } catch (error) {
    log.warn({ err: error, path }, 'the operations log of an instance cannot be written')
  }
}

/** Runs an operation and logs its outcome. */
export async function logged<T> (path: string, name: string, log: Logger, work: () => Promise<T>): Promise<T> {
  const began = performance.now()
  const took = (): string => `${Math.round(performance.now() - began)} ms`
  try {
    const result = await work()
    await logOperation(path, `${name}: done in ${took()}`, log)
    return result
  } catch (error) {
    await logOperation(path, `${name}: failed after ${took()}: ${error instanceof Error ? error.message : String(error)}`, log)
    throw error
  }
}
