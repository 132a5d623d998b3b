// Which files a program of this host takes to run where there is nothing else of the host, as in an image.
import type { HostCommands } from '../core/contracts/services.ts'
import { HostCommandFailed } from '../core/process/run.ts'

/** What the C libraries of Debian and Alpine say of a static program. */
const STATIC = /not a (?:valid )?dynamic/i
/** `name => /path (address)`, and the loader as `/path (address)` */
const LIBRARY = /^\s*(?:\S+ => )?(\/\S+) \(0x/

/** The libraries and the loader that a program is linked with, by their paths; none for a static one. */
export async function librariesOf (commands: HostCommands, program: string): Promise<string[]> {
  try {
    return [...new Set((await commands.run('ldd', [program])).stdout.split('\n').flatMap((line) => LIBRARY.exec(line)?.[1] ?? []))]
  } catch (error) {
    if (error instanceof HostCommandFailed && STATIC.test(error.failure.stderr)) return []
    throw error
  }
}
