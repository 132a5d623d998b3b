// A libvirt daemon for the benchmark: a session daemon whose configuration, sockets and files are all in one folder. The host's libvirt, if
// there is one, is not touched, and no network is defined.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdir, open, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'

const startTimeoutMs = 30_000
/** `nobody`: as root the daemon would be the one of the whole host */
const nobody = 65_534

export interface Libvirt {
  /** the user of its machines; absent: the user of this program */
  readonly user?: number
  virsh (...args: readonly string[]): Promise<string>
  /** Ends the daemon. Machines that it started go on. */
  stop (): Promise<void>
}

/** Starts the daemon in a new folder. */
export async function startLibvirt (commands: HostCommands, folder: string): Promise<Libvirt> {
  const user = process.getuid?.() === 0 ? nobody : undefined
  const env = { HOME: folder, XDG_RUNTIME_DIR: join(folder, 'run'), XDG_CONFIG_HOME: join(folder, 'config'), XDG_CACHE_HOME: join(folder, 'cache'), LANG: 'C' }
  const configuration = join(folder, 'config/libvirt')
  for (const path of [folder, env.XDG_RUNTIME_DIR, env.XDG_CONFIG_HOME, env.XDG_CACHE_HOME, configuration]) {
    await mkdir(path, { recursive: true, mode: 0o700 })
    if (user !== undefined) await chown(path, user, user)
  }
  // Without a log daemon, and without features that only the system's daemon has.
  await writeFile(join(configuration, 'qemu.conf'), 'stdio_handler = "file"\nsecurity_driver = "none"\n')
  const drop = user === undefined ? [] : ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--clear-groups']
  const [file = 'libvirtd', ...args] = [...drop, 'libvirtd', '--pid-file', join(folder, 'libvirtd.pid')]
  const logFile = join(folder, 'libvirtd.log')
  const log = await open(logFile, 'a')
  const child = spawn(file, args, { cwd: folder, env: { PATH: process.env['PATH'], ...env }, stdio: ['ignore', log.fd, log.fd] })
  await log.close()
  const ended = once(child, 'exit')
  const isListening = listening(join(env.XDG_RUNTIME_DIR, 'libvirt/libvirt-sock'))
  if (await Promise.race([isListening, ended.then(() => 'ended' as const)]) !== 'listening') {
    child.kill('SIGKILL')
    throw new Error(`libvirtd did not start:\n${await readFile(logFile, 'utf8')}`)
  }
  return {
    ...user === undefined ? {} : { user },
    async virsh (...words) {
      const [program = 'virsh', ...rest] = [...drop, 'virsh', '--quiet', '--connect', 'qemu:///session', ...words]
      return (await commands.run(program, rest, { env, timeoutMs: 120_000 })).stdout.trim()
    },
    async stop () {
      child.kill('SIGTERM')
      await ended
    }
  }
}

/** Its socket is the first sign that it can be used; an early call waits in the socket. */
async function listening (socket: string): Promise<'listening' | 'late'> {
  const deadline = Date.now() + startTimeoutMs
  while (Date.now() < deadline) {
    try {
      await stat(socket)
      return 'listening'
    } catch (error) {
      if (!hasCode(error, 'ENOENT')) throw error
      await delay(20)
    }
  }
  return 'late'
}
