// A MariaDB that somebody starts for himself: a private folder, one socket, and nothing that costs time.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { eventually } from './eventually.ts'

export const PROGRAM = '/usr/sbin/mariadbd'
const START_LIMIT_MS = 60_000
const POLL_MS = 20

export interface MariadbServer { readonly socketPath: string, readonly pid: number, stop (): Promise<void> }

/** The configuration's `database.url` for one of its databases. */
export function mariadbUrl (socketPath: string, name: string): string {
  return `mysql://root@localhost/${name}?socketPath=${encodeURIComponent(socketPath)}`
}

/** Stops a process between two of its steps. Resolves, once all of it has stopped, to the function that lets it go on. */
export async function hangProcess (pid: number): Promise<() => void> {
  process.kill(pid, 'SIGSTOP')
  // Its threads stop one by one, each when it next has a processor.
  await eventually('the process has stopped', async () => (await statesOf(pid)).every((state) => state === 'T'))
  return () => { process.kill(pid, 'SIGCONT') }
}

/** Starts one with a folder and a socket of its own. It ends with this process. */
export async function startMariadb (): Promise<MariadbServer> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-mariadb-'))
  const socketPath = join(folder, 'socket')
  // PDEATHSIG: a test file that is killed leaves no server behind
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', PROGRAM, ...options(folder, socketPath)], { stdio: ['ignore', 'ignore', 'pipe'] })
  const output: string[] = []
  child.stderr.setEncoding('utf8').on('data', (text: string) => output.push(text))
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      child.kill('SIGTERM')
      await exited
    }
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await listening(child, socketPath)
  } catch (error) {
    await stop()
    throw new Error(`MariaDB did not start:\n${output.join('').split('\n').slice(-20).join('\n')}`, { cause: error })
  }
  return { socketPath, pid: child.pid ?? 0, stop }
}

// Polled: mariadbd tells readiness to systemd only. Its socket is there a moment before it listens.
async function listening (child: ChildProcess, socketPath: string): Promise<void> {
  const signal = AbortSignal.timeout(START_LIMIT_MS)
  while (!await takesConnections(socketPath)) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended')
    await delay(POLL_MS, undefined, { signal })
  }
}

async function takesConnections (socketPath: string): Promise<boolean> {
  const socket = connect(socketPath)
  const isOpen = await once(socket, 'connect').then(() => true, () => false)
  socket.destroy()
  return isOpen
}

// Without grant tables it needs no system tables either, and so no seconds-long mariadb-install-db. Its only door is a socket
// in a private folder. Everything that costs start time or memory is small or off; durability is of no use here.
function options (folder: string, socketPath: string): string[] {
  return [
    '--no-defaults', ...(process.getuid?.() === 0 ? ['--user=root'] : []),
    `--datadir=${folder}`, `--socket=${socketPath}`, `--pid-file=${join(folder, 'pid')}`, `--tmpdir=${folder}`,
    '--skip-networking', '--skip-grant-tables', '--skip-log-bin', '--performance-schema=OFF',
    '--innodb-buffer-pool-size=16M', '--innodb-log-file-size=4M', '--innodb-log-buffer-size=2M',
    '--innodb-data-file-path=ibdata1:4M:autoextend', '--innodb-temp-data-file-path=ibtmp1:1M:autoextend', '--innodb-undo-tablespaces=0',
    // Which index the server prefers follows from what ANALYZE TABLE has counted, on every page, and from no sample that it takes by itself at some moment.
    '--innodb-stats-auto-recalc=0', '--innodb-stats-persistent-sample-pages=10000',
    '--innodb-flush-log-at-trx-commit=0', '--innodb-doublewrite=0', '--innodb-fast-shutdown=2',
    // No host of a test loses power, and each change of a table waits for the disk several times otherwise.
    '--loose-debug-no-sync', '--innodb-flush-method=nosync',
    '--aria-pagecache-buffer-size=1M', '--key-buffer-size=1M', '--table-open-cache=100', '--max-connections=60'
  ]
}

/** The state letter of each thread (proc(5)). */
async function statesOf (pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`)
  const stats = await Promise.all(threads.map(async (thread) => await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => '')))
  return stats.filter((stat) => stat !== '').map((stat) => stat.slice(stat.lastIndexOf(')') + 2).charAt(0))
}
