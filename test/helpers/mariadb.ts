// Gives tests a database of either kind: SQLite in a file of their own, or a MariaDB that this test file starts for itself.
import { spawn, type ChildProcess } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Knex } from 'knex'
import tap, { type Test } from 'tap'
import { openDatabase } from '../../core/db/open.ts'
import { eventually } from './eventually.ts'

const PROGRAM = '/usr/sbin/mariadbd'
const START_LIMIT_MS = 60_000
const POLL_MS = 20

interface Server { readonly socketPath: string, readonly pid: number, stop (): Promise<void> }

// One server per test file (which is one process), started by the first test that needs it.
let server: Promise<Server> | undefined

export type DatabaseTest = (t: Test, database: Knex, url: string) => Promise<void>

/** Runs the same test on SQLite and on MariaDB, each with an empty database of its own. `url` opens a second handle on it. */
export function eachDatabase (t: Test, name: string, fn: DatabaseTest): void {
  void t.test(`${name} (SQLite)`, async (t) => {
    // not t.testdir(): the test may call that itself, which empties it
    const folder = await mkdtemp(join(tmpdir(), 'berth-sqlite-'))
    try {
      await onDatabase(t, `sqlite:${join(folder, 'test.db')}`, fn)
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
  void t.test(`${name} (MariaDB)`, existsSync(PROGRAM) ? {} : { skip: `${PROGRAM} is missing: install the package mariadb-server` }, async (t) => {
    await onDatabase(t, await createMariadbDatabase(), fn)
  })
}

/** A new empty database on this test file's MariaDB; returns its URL. */
export async function createMariadbDatabase (): Promise<string> {
  server ??= startOnce()
  const { socketPath } = await server
  const name = `test_${randomBytes(6).toString('hex')}`
  const admin = openDatabase(urlFor(socketPath, 'information_schema'))
  try {
    await admin.raw('CREATE DATABASE ??', [name])
  } finally {
    await admin.destroy()
  }
  return urlFor(socketPath, name)
}

/** Makes this test file's MariaDB hang, as a machine that has lost its disk does. Resolves to the function that lets it go on. */
export async function hangMariadb (): Promise<() => void> {
  server ??= startOnce()
  const { pid } = await server
  process.kill(pid, 'SIGSTOP')
  // Its threads stop one by one, each when it next has a processor.
  await eventually('MariaDB has stopped', async () => (await statesOf(pid)).every((state) => state === 'T'))
  const resume = (): void => { process.kill(pid, 'SIGCONT') }
  tap.teardown(resume)
  return resume
}

/** The state letter of each thread (proc(5)). */
async function statesOf (pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`)
  const stats = await Promise.all(threads.map(async (thread) => await readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => '')))
  return stats.filter((stat) => stat !== '').map((stat) => stat.slice(stat.lastIndexOf(')') + 2).charAt(0))
}

async function onDatabase (t: Test, url: string, fn: DatabaseTest): Promise<void> {
  const database = openDatabase(url)
  try {
    await fn(t, database, url)
  } finally {
    await database.destroy()
  }
}

function urlFor (socketPath: string, name: string): string {
  return `mysql://root@localhost/${name}?socketPath=${encodeURIComponent(socketPath)}`
}

async function startOnce (): Promise<Server> {
  const started = await start()
  tap.teardown(() => started.stop())
  return started
}

async function start (): Promise<Server> {
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

// Polled: mariadbd tells readiness to systemd only; it makes the socket as its last step.
async function listening (child: ChildProcess, socketPath: string): Promise<void> {
  const signal = AbortSignal.timeout(START_LIMIT_MS)
  while (!existsSync(socketPath)) {
    if (child.exitCode !== null || child.signalCode !== null) throw new Error('it ended')
    await delay(POLL_MS, undefined, { signal })
  }
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
    '--innodb-flush-log-at-trx-commit=0', '--innodb-doublewrite=0', '--innodb-fast-shutdown=2',
    '--aria-pagecache-buffer-size=1M', '--key-buffer-size=1M', '--table-open-cache=100', '--max-connections=60'
  ]
}
