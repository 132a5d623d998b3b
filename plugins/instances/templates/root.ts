// The root disk of VMs that have no OCI image yet: an image of the usual folders, all empty, and of a file that rehearsals read.
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { renameDurably, syncFile } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import type { TemplatePaths } from './paths.ts'

const FOLDERS = ['bin', 'dev', 'etc', 'home', 'lib', 'mnt', 'opt', 'proc', 'root', 'run', 'sbin', 'srv', 'sys', 'tmp', 'usr', 'var']

const DATA_BYTES = 512 * 2 ** 10

/** Makes it unless it is there. */
export async function makeRoot (paths: TemplatePaths, commands: HostCommands, signal: AbortSignal): Promise<void> {
  if (await isThere(paths.root)) return
  const folder = await mkdtemp(join(paths.folder, '.making-root-'))
  try {
    const content = join(folder, 'content')
    for (const name of FOLDERS) await mkdir(join(content, name), { recursive: true })
    await writeFile(join(content, 'rehearsal.data'), randomBytes(DATA_BYTES))
    const file = join(folder, 'stage.erofs')
    await commands.run('mkfs.erofs', ['--quiet', '-T0', file, content], { signal })
    await chmod(file, 0o644)
    await syncFile(file)
    await renameDurably(file, paths.root)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
