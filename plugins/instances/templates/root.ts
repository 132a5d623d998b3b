// The root disk of VMs that have no OCI image yet: an image of the usual folders, all empty.
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { renameDurably, syncFile } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import type { TemplatePaths } from './paths.ts'

const FOLDERS = ['bin', 'dev', 'etc', 'home', 'lib', 'mnt', 'opt', 'proc', 'root', 'run', 'sbin', 'srv', 'sys', 'tmp', 'usr', 'var']

/** Makes it unless it is there. */
export async function makeRoot (paths: TemplatePaths, commands: HostCommands, signal: AbortSignal): Promise<void> {
  if (await isThere(paths.root)) return
  const folder = await mkdtemp(join(paths.folder, '.making-root-'))
  try {
    const content = join(folder, 'content')
    for (const name of FOLDERS) await mkdir(join(content, name), { recursive: true })
    const file = join(folder, 'root.erofs')
    await commands.run('mkfs.erofs', ['--quiet', '-T0', file, content], { signal })
    await chmod(file, 0o644)
    await syncFile(file)
    await renameDurably(file, paths.root)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
