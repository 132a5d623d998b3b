// Firecracker's jailer, where the server is root and the jailer is there. It becomes Firecracker, in the same process, with a root of its own that has the VM's files and nothing else.
// The files are shown there by bind mounts (jail/main.c): hard links would need one file system, and a second name of a disk means elsewhere that others share it.
import { mkdir, realpath, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { vmmCommand } from '../../core/library/vmm/command.ts'
import { createProbeCache } from '../../core/library/vmm/probe-cache.ts'
import type { RestLaunch } from '../../core/library/vmm/rest-launch.ts'
import { runFolder, type RunFolder } from '../../core/library/vmm/run-folder.ts'
import { packageRoot } from '../../core/package-root.ts'
import { HostCommandFailed, HostCommandMissing } from '../../core/process/run.ts'

const PROGRAM = join(packageRoot, 'dist/plugins/hypervisor-firecracker/berth-jail')
const BASE = 'jail'
const ID = 'vm'
/** a jailed Firecracker's root, in its run folder: `<base>/<name of the program>/<id>/root` for the jailer, to which a link of that name is the base itself */
export const ROOT = `${BASE}/${ID}/root`
/** what mounts, device nodes, and files of another user's take */
const CAPABILITIES = ['chown', 'dac_override', 'fowner', 'mknod', 'setgid', 'setuid', 'sys_admin'] as const
const NOBODY = { uid: 65_534, gid: 65_534 }
const COMMAND_TIMEOUT_MS = 10_000
const TRIAL = 'jailer-trial'

export interface Jailer {
  /** absolute */
  readonly path: string
  /** path of Firecracker, absolute and no link */
  readonly binary: string
}

export interface JailerSettings {
  /** a command or a path; `off`: none */
  readonly jailer: string
  /** Firecracker, likewise */
  readonly binary: string
}

interface JailerDeps {
  readonly commands: HostCommands
  /** the driver's own folder */
  readonly folder: string
}

type Identity = NonNullable<VmSpec['identity']>

class JailerDiffers extends Error {
  override readonly name = 'JailerDiffers'
}

/** What starts a Firecracker in a jail. @param files by their names in its root @param args Firecracker's own */
export function startJailed ({ path, binary }: Jailer, { uid, gid }: Identity, files: Readonly<Record<string, string>>, args: readonly string[]): Pick<RestLaunch, 'command' | 'links' | 'capabilities'> {
  return {
    command: [
      PROGRAM, 'start', ROOT, ...Object.keys(files), '--',
      path, '--id', ID, '--exec-file', binary, '--uid', String(uid), '--gid', String(gid), '--chroot-base-dir', BASE, '--', ...args
    ],
    links: { ...files, [`${BASE}/${basename(binary)}`]: '.' },
    capabilities: CAPABILITIES
  }
}

/** Takes userfaultfd from a new jail, before a guest runs: the jailer puts it there, which a VMM has nowhere else, and this driver has no use for it. */
export async function takeUserfaultfd ({ room }: RunFolder): Promise<void> {
  await rm(join(room, 'dev/userfaultfd'), { force: true })
}

/** Shows a jailed VM the file that the link `name` in its run folder names now. */
export async function showInJail (commands: HostCommands, { path }: RunFolder, pid: number, name: string): Promise<void> {
  await commands.run(PROGRAM, ['show', String(pid), name], { cwd: path, timeoutMs: COMMAND_TIMEOUT_MS })
}

/** `findJailer`, with one answer for as long as the server runs: what the start has said of it, each launch does. */
export function createJailerSearch (settings: JailerSettings, deps: JailerDeps): () => Promise<Jailer | string> {
  let found: Promise<Jailer | string> | undefined
  return () => {
    // A failed attempt to find out is no answer.
    found ??= findJailer(settings, deps).catch((error: unknown) => { found = undefined; throw error })
    return found
  }
}

/** The jailer, or why VMs run without it. */
export async function findJailer ({ jailer, binary }: JailerSettings, deps: JailerDeps): Promise<Jailer | string> {
  if (jailer === 'off') return 'it is off by its setting'
  if (process.getuid?.() !== 0) return 'only root can use it'
  const program = await locate(binary, deps)
  if (program === undefined) return `the host has no command ${binary}`
  const path = (jailer.includes('/') ? undefined : await locate(join(dirname(program), jailer), deps)) ?? await locate(jailer, deps)
  if (path === undefined) return `the host has no command ${jailer}`
  const found = { path, binary: program }
  const key = await Promise.all([path, program].map(async (file) => `${file} ${(await stat(file)).mtimeMs}`))
  try {
    // A failure is not remembered: the next server tries again.
    await createProbeCache(join(deps.folder, 'jailer.json')).recall(key.join(' '), async () => {
      await tryOnce(found, deps)
      return undefined
    })
    return found
  } catch (error) {
    if (error instanceof HostCommandFailed || HostCommandMissing.is(error) || error instanceof JailerDiffers) return `${path} cannot be used: ${error.message}`
    throw error
  }
}

/** The path of a program; undefined when there is none. @param name a command or a path */
async function locate (name: string, { commands }: JailerDeps): Promise<string | undefined> {
  try {
    return await realpath((await commands.run('sh', ['-c', 'command -v "$1"', 'sh', name])).stdout.trim())
  } catch (error) {
    if (error instanceof HostCommandFailed) return undefined
    throw error
  }
}

/** Has the jailer start Firecracker once, which says its version: the host may not let it (a container's root has fewer rights), and the two must be of one version. */
async function tryOnce (jailer: Jailer, { commands, folder }: JailerDeps): Promise<void> {
  const run = runFolder(folder, TRIAL, ID, { jail: { root: ROOT, isUsed: true } })
  // left by a server that was killed
  run.remove()
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await run.make(NOBODY)
    const { command: [file, ...args], links, capabilities } = startJailed(jailer, NOBODY, {}, ['--version'])
    for (const [name, target] of Object.entries(links)) await run.link(name, target)
    const [first, ...rest] = await vmmCommand(file, args, 'kvm', { identity: NOBODY }, capabilities)
    const firecracker = versionIn((await commands.run(first, rest, { cwd: run.path, timeoutMs: COMMAND_TIMEOUT_MS })).stdout)
    const own = versionIn((await commands.run(jailer.path, ['--version'], { timeoutMs: COMMAND_TIMEOUT_MS })).stdout)
    if (own === undefined || own !== firecracker) throw new JailerDiffers(`its version is ${own ?? 'unknown'}, and Firecracker's is ${firecracker ?? 'unknown'}`)
  } finally {
    run.remove()
  }
}

function versionIn (said: string): string | undefined {
  return /\bv(\d+\.\d+\.\d+\S*)/.exec(said)?.[1]
}
