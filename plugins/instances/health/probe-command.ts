// A probe by a command in the guest, which may be hostile. Its output is not read, and its end is awaited no longer than its timeout and a little more.
import type { GuestLink } from '../../guest/contract.ts'
import { isLoss, isRefusal } from '../guest/guest-errors.ts'
import { pause } from '../../../core/jobs/pause.ts'
import { printable } from '../validate/env.ts'
import type { CommandCheck } from './check.ts'

/** The guest ends a command at its timeout. This bound is for a guest that does not. */
const SLACK_MS = 1000
const TIMED_OUT = 124

/** Why the probe failed; undefined when it did not. */
export async function probeByCommand (link: GuestLink, { command, workingDir, timeoutMs }: CommandCheck, env: Readonly<Record<string, string>>, signal: AbortSignal): Promise<string | undefined> {
  const session = link.exec({ argv: command, env, cwd: workingDir ?? '/', timeoutMs })
  // The command need not read its standard input: such an error is no failure of the probe.
  session.stdin.on('error', () => {})
  session.stdin.end()
  const over = new AbortController()
  const result = session.result.then(({ exitCode, error }) => {
    if (error !== undefined) return printable(error)
    if (exitCode === TIMED_OUT) return `no end within ${timeoutMs} ms`
    return exitCode === 0 ? undefined : `exit code ${exitCode}`
  }, (error: unknown) => {
    if (isLoss(error) || isRefusal(error)) return printable(error.message)
    throw error
  })
  const end = (): void => { over.abort() }
  signal.addEventListener('abort', end, { once: true })
  try {
    const late = pause(timeoutMs + SLACK_MS, over.signal).then(() => {
      if (!over.signal.aborted || signal.aborted) session.cancel()
      return `no end within ${timeoutMs} ms`
    })
    return await Promise.race([result, late])
  } finally {
    signal.removeEventListener('abort', end)
    over.abort()
  }
}
