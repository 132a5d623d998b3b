// A QEMU that shares a memory file among VMs (8.2 or later), for tests of that: the one that BERTH_QEMU names, the host's, or the one that setup/unpack-newer-qemu.sh has unpacked for the long tier.
import { chmod, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { readonlyPrivate } from '../../plugins/hypervisor-qemu/restore.ts'

const UNPACKED = join(packageRoot, '.cache/newer-qemu')
const NAME = 'qemu-system-x86_64'
const commands = createHostCommands()

/** Its path, which VMs' users can reach; undefined when there is none. */
export async function newerQemu (t: Test): Promise<string | undefined> {
  for (const binary of [process.env['BERTH_QEMU'] ?? NAME]) if (await isNewer(binary)) return binary
  const unpacked = join(UNPACKED, NAME)
  if (!await isNewer(unpacked)) return undefined
  // A checkout may lie where VMs' users cannot go.
  const folder = await mkdtemp(join(tmpdir(), 'berth-qemu-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  await chmod(folder, 0o755)
  await cp(UNPACKED, folder, { recursive: true })
  return join(folder, NAME)
}

export const WITHOUT_NEWER_QEMU = 'no QEMU 8.2 or later is here: `sh setup/unpack-newer-qemu.sh .cache/newer-qemu` gets one on Debian 12, or name one in BERTH_QEMU'

async function isNewer (binary: string): Promise<boolean> {
  try {
    const { stdout } = await commands.run(binary, ['--version'])
    return readonlyPrivate(/version (?<version>\d+\.\d+)/.exec(stdout)?.groups?.['version'] ?? '')
  } catch {
    return false
  }
}
