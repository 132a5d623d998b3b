// Memory of the host that was used just before: a machine that is itself a VM gets its memory from its own host page by page at the first touch, and gives back what it has not used for a while.
import { createHostCommands } from '../core/process/run.ts'

const TIMEOUT_MS = 60_000

/** Fills so much memory and gives it back to the kernel, which hands it out next. */
export async function touchHostMemory (bytes: number): Promise<void> {
  const program = `const memory = Buffer.allocUnsafeSlow(${bytes}); for (let at = 0; at < memory.length; at += 4096) memory[at] = 1`
  await createHostCommands().run(process.execPath, ['-e', program], { timeoutMs: TIMEOUT_MS })
}
