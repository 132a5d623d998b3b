// A whole Debian as a tar archive, set up by its own scripts as on a machine of its own, kept in the cache of this project: for tests of what helpers/debian leaves out.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { hostMirror } from '../../setup/systems/mirror.ts'

const SUITE = 'bookworm'
/** Devices are the guest's own; the rest only makes the archive large. */
const LEFT_OUT = ['dev/*', 'proc/*', 'sys/*', 'run/*', 'usr/share/doc/*', 'usr/share/locale/*', 'usr/share/man/*', 'var/cache/apt/*', 'var/lib/apt/lists/*', 'var/log/*.log', 'etc/machine-id', 'etc/hostname', 'etc/resolv.conf']
const MAKE_TIMEOUT_MS = 900_000

const commands = createHostCommands()
const cache = join(packageRoot, '.cache/debian')

/** Why none can be made here; `false` when it can. */
export function noDebianSystem (): string | false {
  if (process.getuid?.() !== 0) return 'debootstrap needs root'
  return existsSync('/usr/sbin/debootstrap') ? false : 'debootstrap is not installed: the package debootstrap'
}

/** The path of an archive of a minimal Debian with these packages, made first when it is not in the cache. */
export async function debianSystem (packages: readonly string[]): Promise<string> {
  const recipe = createHash('sha256').update(JSON.stringify([SUITE, packages, LEFT_OUT])).digest('hex').slice(0, 12)
  const file = join(cache, `system-${recipe}.tar`)
  if (existsSync(file)) return file
  const mirror = await hostMirror(commands)
  if (mirror === undefined) throw new Error('apt knows no archive of Debian here')
  await mkdir(cache, { recursive: true })
  const work = await mkdtemp(join(cache, 'making-'))
  try {
    const root = join(work, 'root')
    await commands.run('debootstrap', ['--variant=minbase', `--include=${packages.join(',')}`, SUITE, root, mirror.url], { timeoutMs: MAKE_TIMEOUT_MS })
    // As debootstrap leaves nobody's machine: the id is made at the first start.
    await writeFile(join(work, 'left-out'), LEFT_OUT.map((path) => `./${path}\n`).join(''))
    await commands.run('tar', ['--create', `--file=${work}/system.tar`, '--sort=name', '--mtime=@0', '--numeric-owner', '--wildcards', '--anchored', `--exclude-from=${work}/left-out`, `--directory=${root}`, '.'], { timeoutMs: MAKE_TIMEOUT_MS })
    await rename(join(work, 'system.tar'), file)
  } finally {
    await rm(work, { recursive: true, force: true })
  }
  return file
}
