// A second system beside this one: a real systemd as the first process of namespaces of its own, with everything that it changes thrown away at its end.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { Test } from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'

const runFile = promisify(execFile)
const NAMESPACES = ['--mount', '--pid', '--net', '--ipc', '--uts', '--cgroup']
const BOOT_MS = 60_000

/** Why no systemd can be booted here; `false` when one can. */
export async function skipReason (): Promise<string | false> {
  const missing = missingPrivileges()
  if (missing !== undefined) return missing
  if (!existsSync('/lib/systemd/systemd')) return 'the package systemd is not installed'
  return await ownGroup() === undefined ? 'this system has no control groups of version 2' : false
}

export interface Answer { readonly code: number, readonly stdout: string, readonly stderr: string }

export class Machine {
  readonly #pid: number

  constructor (pid: number) {
    this.#pid = pid
  }

  /** A command in it, to its end, whatever that is. */
  async try (file: string, ...args: readonly string[]): Promise<Answer> {
    try {
      return { code: 0, ...await runFile('nsenter', this.#enter(file, args), { maxBuffer: 2 ** 26 }) }
    } catch (error) {
      if (!(error instanceof Error) || !('stdout' in error) || !('code' in error)) throw error
      return { code: Number(error.code), stdout: String(error.stdout), stderr: 'stderr' in error ? String(error.stderr) : '' }
    }
  }

  /** Its output. @throws when it fails */
  async run (file: string, ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.try(file, ...args)
    if (code !== 0) throw new Error(`${[file, ...args].join(' ')}: exit code ${code}\n${stdout}${stderr}`)
    return stdout
  }

  async write (path: string, text: string): Promise<void> {
    await mkdir(dirname(this.path(path)), { recursive: true })
    await writeFile(this.path(path), text)
  }

  /** A path of the machine as this process reaches it. */
  path (inside: string): string {
    return join(`/proc/${this.#pid}/root`, inside)
  }

  /** A program in it that goes on, in its namespace `berth`. */
  start (file: string, ...args: readonly string[]): ChildProcess {
    return spawn('nsenter', this.#enter('nsenter', ['--net=/run/netns/berth', file, ...args]), { stdio: ['pipe', 'pipe', 'inherit'] })
  }

  /** One property of a unit. */
  async show (unit: string, property: string): Promise<string> {
    return (await this.run('systemctl', 'show', '--value', `--property=${property}`, unit)).trim()
  }

  async log (unit: string): Promise<string> {
    return await this.run('journalctl', '--no-pager', '--output=cat', `--unit=${unit}`)
  }

  #enter (file: string, args: readonly string[]): string[] {
    return [`--target=${this.#pid}`, ...NAMESPACES, '--root', '--wd', file, ...args]
  }
}

/** Boots one that ends with the test. */
export async function bootMachine (t: Test): Promise<Machine> {
  const work = await mkdtemp(join(tmpdir(), 'berth-machine-'))
  const group = await makeGroup()
  const boot = join(packageRoot, 'test/systemd/boot.sh')
  // Its control groups begin below the one that the shell has entered. Whatever ends this process, the kernel ends the machine.
  const child = spawn('setpriv', [
    '--pdeathsig', 'KILL', 'sh', '-c', 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"', 'sh', group,
    'unshare', ...NAMESPACES, '--fork', '--kill-child', 'sh', boot, work, packageRoot
  ], { stdio: ['ignore', 'ignore', 'pipe'] })
  let complaint = ''
  child.stderr.on('data', (text: Buffer) => { complaint += text.toString() })
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }
    await removeGroup(group)
    await rm(work, { recursive: true })
  })
  const deadline = performance.now() + BOOT_MS
  // Polled: the one who could tell is being started.
  for (;;) {
    const pid = await firstChild(child.pid)
    const machine = pid === undefined ? undefined : new Machine(pid)
    const state = machine !== undefined && existsSync(machine.path('/run/systemd/private')) ? (await machine.try('systemctl', 'is-system-running')).stdout.trim() : 'not there'
    if (machine !== undefined && child.pid !== undefined && ['running', 'degraded'].includes(state)) {
      // Its root of the control groups is its own alone from here on, so that it can hand controllers down.
      await writeFile(join(await ownGroup() ?? '', 'cgroup.procs'), String(child.pid))
      return machine
    }
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`the machine did not boot (${state}): ${complaint}`)
    await delay(50)
  }
}

async function firstChild (pid: number | undefined): Promise<number | undefined> {
  const path = `/proc/${pid}/task/${pid}/children`
  const [child] = existsSync(path) ? (await readFile(path, 'utf8')).trim().split(' ') : []
  return child === undefined || child === '' ? undefined : Number(child)
}

/** The folder of this process's control group, of version 2. */
async function ownGroup (): Promise<string | undefined> {
  const own = /^0::(.*)$/m.exec(await readFile('/proc/self/cgroup', 'utf8'))?.[1]
  const mount = / - cgroup2 /.test(await readFile('/proc/self/mountinfo', 'utf8')) ? ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find(path => existsSync(join(path, 'cgroup.procs'))) : undefined
  return own === undefined || mount === undefined ? undefined : join(mount, own)
}

/**
 * A controller of version 2 for the machines that the test boots, whichever the kernel has left; undefined where there is none, or none can be handed down. A test
 * that handed one down takes it back at its end.
 */
export async function controllerFor (t: Test): Promise<string | undefined> {
  const file = join(await ownGroup() ?? '', 'cgroup.subtree_control')
  const words = async (path: string): Promise<string[]> => (await readFile(path, 'utf8')).split(/\s+/).filter(word => word !== '')
  const [handedDown] = await words(file)
  const [controller] = await words(join(dirname(file), 'cgroup.controllers'))
  if (handedDown !== undefined || controller === undefined) return handedDown
  try {
    await writeFile(file, `+${controller}`)
  } catch {
    return undefined
  }
  t.teardown(async () => { await writeFile(file, `-${controller}`) })
  return controller
}

async function makeGroup (): Promise<string> {
  const group = join(await ownGroup() ?? '', `berth-machine-${randomBytes(4).toString('hex')}`)
  await mkdir(group)
  return group
}

async function removeGroup (group: string): Promise<void> {
  for (const entry of await readdir(group, { withFileTypes: true })) if (entry.isDirectory()) await removeGroup(join(group, entry.name))
  // The kernel takes a moment to let go of the last process.
  for (let attempt = 0; ; attempt++) {
    try {
      return await rmdir(group)
    } catch (error) {
      if (attempt === 100) throw error
      await delay(20)
    }
  }
}
