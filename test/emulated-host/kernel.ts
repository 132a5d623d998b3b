// The kernel that an emulated host boots: Debian's standard one. `linux-image-cloud-amd64`, which guests run, has neither vfio nor 9p.
import { basename, join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { packageRoot } from '../../core/package-root.ts'
import { downloadKernel, findKernel, unpackKernel, type UnpackedKernel } from '../../plugins/guest/system/kernel-package.ts'
import { knownPackage } from '../../plugins/guest/system/known-package.ts'
import { kept } from './kept.ts'

const PACKAGE = 'linux-image-amd64'
const CACHE = join(packageRoot, '.cache/packages')
const DEPMOD_TIMEOUT_MS = 120_000

/** Its files, unpacked once for a checkout. */
export async function hostKernel (commands: HostCommands): Promise<UnpackedKernel> {
  const found = await knownPackage(commands, PACKAGE, CACHE)
  const folder = await kept(`${found.name}-${found.version.replaceAll(':', '-')}`, async (path) => {
    const { modules } = await unpackKernel(commands, await downloadKernel(commands, found, CACHE), path)
    await commands.run('depmod', ['-b', join(modules, '../../..'), basename(modules)], { timeoutMs: DEPMOD_TIMEOUT_MS })
  })
  return await findKernel(folder)
}
