// Checks whether a VMM's program is installed. Whether it runs guests is probed on first use, since that may need the kernel to be fetched.
import type { HostCommands, Logger } from '../../contracts/services.ts'
import { SkipPlugin } from '../../plugins/manifest.ts'
import { HostCommandMissing } from '../../process/run.ts'
import { checkTool } from '../../process/tool-version.ts'

const VERSION_TIMEOUT_MS = 10_000

export interface ProgramServices {
  readonly commands: HostCommands
  readonly log: Pick<Logger, 'warn'>
}

/** Throws `SkipPlugin` when it is not installed. @param tool its name among the tools */
export async function checkProgram (tool: string, binary: string, { commands, log }: ProgramServices, signal: AbortSignal): Promise<void> {
  try {
    await checkTool(binary, { commands, log, tool, timeoutMs: VERSION_TIMEOUT_MS, signal })
  } catch (error) {
    if (HostCommandMissing.is(error)) throw new SkipPlugin(error.message)
    throw error
  }
}
