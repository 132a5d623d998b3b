// Finds programs of this host and runs them for its checks.
import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'

const TIMEOUT_MS = 5000
const MAX_OUTPUT_BYTES = 64 * 1024
const MAX_LINE = 80

/** The folders in which programs are looked for. */
export interface ToolPath {
  /** as in the variable PATH */
  readonly path: string
}

/** The program's file, including those on root's PATH only; undefined when there is none. */
export async function findTool (command: string, { path }: ToolPath): Promise<string | undefined> {
  for (const folder of [...path.split(delimiter), '/usr/local/bin', '/usr/sbin', '/sbin']) {
    const file = join(folder, command)
    if (await access(file, constants.X_OK).then(() => true, () => false)) return file
  }
  return undefined
}

/** Runs it, for at most 5 s. Its exit code, undefined when a signal ended it or it could not be run, and the last line that it said, or the first of its standard output. */
export async function runTool (file: string, args: readonly string[]): Promise<{ readonly code: number | undefined, readonly said: string, readonly out: string, readonly hung: boolean }> {
  return await new Promise((resolve) => {
    execFile(file, args, { timeout: TIMEOUT_MS, killSignal: 'SIGKILL', maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) => {
      const said = stdout.split('\n', 1)[0]?.trim() || stderr.trim().split('\n').at(-1)?.trim() || (error?.killed === true ? `it did not end within ${TIMEOUT_MS / 1000} s` : '')
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : undefined
      resolve({ code, said: said.slice(0, MAX_LINE), out: stdout, hung: error?.killed === true })
    })
  })
}
