// Where modules and headers come from: the Debian packages that belong to the kernel's, or the operator's own folder of modules.
import { mkdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { KernelHeadersUnavailable } from '../errors.ts'
import { downloadKernel, downloadPackage } from './kernel-package.ts'
import { knownPackage } from './known-package.ts'
import { readRelations, type PackageRelation } from './package-relations.ts'

/** Puts the files below a folder, at their paths in a root file system. */
export type BringFiles = (tree: string, signal: AbortSignal) => Promise<void>

const IMAGE_PREFIX = 'linux-image-'

/** @param identity of the kernel's package, `name=version` */
export function packagedFiles (commands: HostCommands, identity: string, cache: string): BringFiles {
  return async (tree, signal) => {
    for (const file of await fetchPackages(commands, identity, cache, signal)) await commands.run('dpkg-deb', ['-x', file, tree], { signal })
  }
}

/** The packages with a kernel's modules and headers, in the cache. */
export async function fetchPackages (commands: HostCommands, identity: string, cache: string, signal: AbortSignal): Promise<readonly string[]> {
  const [name = '', version = ''] = identity.split('=')
  if (!name.startsWith(IMAGE_PREFIX)) throw KernelHeadersUnavailable(`no package is known that has the headers for ${name}`)
  // The signed and the unsigned build of a kernel have the same headers.
  const headers = { name: `linux-headers-${name.slice(IMAGE_PREFIX.length).replace(/-unsigned$/, '')}`, version }
  const file = await downloadPackage(commands, headers, cache, signal)
  const { stdout } = await commands.run('dpkg-deb', ['--field', file, 'Depends'], { signal })
  const files = [file, ...await downloadKernel(commands, { name, version }, cache, signal)]
  for (const wanted of neededPackages(stdout)) {
    const found = wanted.version === undefined ? await knownPackage(commands, wanted.name, cache, signal) : { name: wanted.name, version: wanted.version }
    files.push(await downloadPackage(commands, found, cache, signal))
  }
  return files
}

/** The packages among these dependencies that the headers' links lead to: not the compiler, which the image brings. */
export function neededPackages (depends: string): PackageRelation[] {
  return readRelations(depends).filter(({ name }) => /^linux-(?:headers|kbuild)-/.test(name))
}

/** An operator's own kernel has no headers: its folder of modules is used as it is. */
export function ownFiles (commands: HostCommands, modulesPath: string): BringFiles {
  return async (tree, signal) => {
    const modules = join(tree, 'usr/lib/modules')
    await mkdir(modules, { recursive: true })
    await commands.run('cp', ['--archive', '--no-target-directory', modulesPath, join(modules, basename(modulesPath))], { signal })
  }
}
