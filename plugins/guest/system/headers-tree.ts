// Rearranges unpacked packages so that a root can show them, whatever its image looks like.
import { lstat, mkdir, readdir, rename, rm, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { KernelHeadersUnavailable } from '../errors.ts'

/** Folders of a root that the disk has; packages also have documents and the kernel itself. */
const KEPT = new Set(['lib', 'usr', 'usr/lib', 'usr/lib/modules', 'usr/src'])

/**
 * All files are below `/usr`. An image whose `/lib` is a link to `usr/lib` finds them there; an image with a folder `/lib` gets a link
 * `/lib/modules/<release>`. `modules.dep` and the like are generated, as Debian does at installation.
 */
export async function makeHeadersTree (commands: HostCommands, tree: string, signal: AbortSignal): Promise<string> {
  const modules = join(tree, 'usr/lib/modules')
  await mkdir(modules, { recursive: true })
  // Debian 13 and later have no /lib of their own.
  for (const name of await namesIn(join(tree, 'lib/modules'))) await rename(join(tree, 'lib/modules', name), join(modules, name))
  await rm(join(tree, 'lib'), { recursive: true, force: true })
  await removeOthers(tree)
  const [release, ...others] = await namesIn(modules)
  if (release === undefined || others.length > 0) throw KernelHeadersUnavailable(`the packages have modules of ${others.length === 0 ? 'no kernel' : 'several kernels'}`)
  await mkdir(join(tree, 'lib/modules'), { recursive: true })
  await symlink(`../../usr/lib/modules/${release}`, join(tree, 'lib/modules', release))
  await commands.run('depmod', ['-b', tree, release], { signal })
  return release
}

async function removeOthers (tree: string): Promise<void> {
  for (const folder of ['', 'usr', 'usr/lib']) {
    for (const name of await namesIn(join(tree, folder))) {
      const path = join(folder, name)
      if (!KEPT.has(path) && !path.startsWith('usr/lib/linux-kbuild-')) await rm(join(tree, path), { recursive: true })
    }
  }
}

async function namesIn (folder: string): Promise<string[]> {
  try {
    return (await lstat(folder)).isDirectory() ? await readdir(folder) : []
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}
