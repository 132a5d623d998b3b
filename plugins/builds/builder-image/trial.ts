// Tests the programs of a root that was put together from packages, before the image is made: a missing library is noticed here, and not in every build.
import type { HostCommands } from '../../../core/contracts/services.ts'
import { HostCommandFailed } from '../../../core/process/errors.ts'
import { BuilderImageUnavailable } from './errors.ts'
import { inRoot } from '../../../core/library/debian/in-root.ts'

const TRIAL_TIMEOUT_MS = 60_000

/**
 * Runs each with `--version`, and lets the dynamic loader list its libraries: some programs load theirs late, and crun prints nothing without a `/proc`,
 * which not every server may mount.
 * @throws BuilderImageUnavailable that names the program, with its last output
 */
export async function tryPrograms (commands: HostCommands, root: string, programs: readonly string[], signal?: AbortSignal): Promise<void> {
  const options = { timeoutMs: TRIAL_TIMEOUT_MS, signal }
  for (const program of programs) {
    try {
      const { stdout } = await inRoot(commands, root, ['env', 'LD_TRACE_LOADED_OBJECTS=1', program], options)
      const missing = /^[\t ]*(\S+) => not found$/m.exec(stdout)?.[1]
      if (missing !== undefined) throw doesNotRun(program, `it lacks the library ${missing}`)
      if (program !== 'crun') await inRoot(commands, root, [program, '--version'], options)
    } catch (error) {
      if (!(error instanceof HostCommandFailed)) throw error
      throw doesNotRun(program, error.failure.stderr.trim().split('\n').at(-1) ?? error.message, error)
    }
  }
}

function doesNotRun (program: string, why: string, cause?: unknown): Error {
  return BuilderImageUnavailable.from(cause, `its ${program} does not run: ${why}`)
}
