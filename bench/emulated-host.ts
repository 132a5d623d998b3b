// Runs benchmarks on an emulated host with KVM, for machines whose own KVM is missing or does not boot the guests' kernel, and prints their figures here.
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { createHostCommands } from '../core/process/run.ts'
import { runUnderKvm } from '../test/emulated-host/kvm.ts'
import { namedPrograms } from '../test/emulated-host/named-programs.ts'
import { inFolder } from './folder.ts'
import { compileGuestProgram } from './guest/image.ts'

export { kvmHere } from '../test/emulated-host/kvm.ts'

const MEMORY_MIB = 6144
/** of all benchmarks that are named */
const TIMEOUT_MS = 2 * 3_600_000

/** The exit code of the same command there. */
export async function benchOnEmulatedHost (args: readonly string[]): Promise<number> {
  let code = 1
  await inFolder(async (folder) => {
    const data = join(folder, 'data')
    await mkdir(data)
    await compileGuestProgram(createHostCommands(), data)
    const { tap: printed, exitCode = 1, evidence } = await runUnderKvm({
      file: new URL('main.js', import.meta.url), args, data, env: namedPrograms(),
      alwaysEmulated: true, processors: 1, memoryMib: MEMORY_MIB, timeoutMs: TIMEOUT_MS, place: folder, onErrors: (piece) => process.stderr.write(piece)
    }, (line) => console.error(line))
    process.stdout.write(printed)
    if (exitCode !== 0) console.error(evidence[0])
    code = exitCode
  })
  return code
}
