// The steps that are run in each cell, and their results.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { open, readFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import type { Cell } from './cells.ts'

const TIMEOUT_MS = 1_800_000
const MOST_OF_A_FAILURE = 240

/** Tests of the fast tier without VMs whose result depends on what a host lets a server do. */
const TESTS = [
  'test/core/app.test', 'test/core/data/lock', 'test/core/data/reserve', 'test/core/db/open.test', 'test/core/fs/disk-space', 'test/core/process/identity', 'test/core/process/unix-socket', 'test/core/secrets/',
  'test/plugins/images/disk', 'test/plugins/images/owners', 'test/plugins/images/routes', 'test/plugins/instances/logs/guard', 'test/plugins/instances/restart', 'test/plugins/instances/third-party-driver',
  'test/plugins/networking/plugin', 'test/plugins/networking/uplink', 'test/plugins/egress/control/keeper', 'test/plugins/egress/plugin',
  'test/proxy/workers/become-user', 'test/proxy/config', 'test/proxy/dns.test', 'test/integration/unprivileged'
]

export interface Place {
  readonly checkout: string
  /** for logs and the home folder of the cell */
  readonly folder: string
  readonly owner: number
  /** a folder of commands that is searched before this host's */
  readonly bin?: string
}

/** Runs quickstart and tests; resolves to one line for the result of each. */
export async function runCell (name: string, cell: Cell, place: Place): Promise<readonly string[]> {
  const steps = [
    ...cell.first === undefined ? [] : [cell.first],
    { name: 'quickstart', command: ['npm', 'run', '--silent', 'quickstart'] },
    { name: 'tests', command: ['npm', '--silent', 'test', '--', ...TESTS] }
  ]
  const lines: string[] = []
  for (const step of steps) {
    const log = join(place.folder, `${name}.${step.name.replace(' ', '-')}.log`)
    const code = await runStep(step.command, log, cell, place)
    const said = (await readFile(log, 'utf8')).split('\n').filter((line) => line.trim() !== '')
    const last = said.findLast((line) => !line.startsWith('{'))
    lines.push(`${step.name}: ${last ?? 'nothing'}${code === 0 ? '' : ` (ended with ${String(code)})`}`, ...skips(said))
  }
  return lines
}

/** Each reason once, with the number of tests that were skipped for it, and the names of the failures. */
function skips (lines: readonly string[]): string[] {
  const reasons = new Map<string, number>()
  for (const line of lines) {
    const reason = /^skipped: .*?\.ts(?: > .*?)?: (?<reason>.+)$/.exec(line)?.groups?.['reason']
    if (reason !== undefined) reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
  }
  const failures = lines.filter((line) => line.startsWith('failed: ')).map((line) => line.slice(0, MOST_OF_A_FAILURE))
  return [...[...reasons].map(([reason, count]) => `skipped ${count}: ${reason}`), ...failures].map((line) => `  ${line}`)
}

async function runStep (command: readonly string[], log: string, cell: Cell, { checkout, folder, owner, bin }: Place): Promise<number | string> {
  const file = await open(log, 'w')
  try {
    const child = spawn('sh', ['-c', cell.enter ?? 'exec "$@"', 'sh', ...command], {
      cwd: checkout,
      // a process group of its own, of which nothing outlives the step
      detached: true,
      stdio: ['ignore', file.fd, file.fd],
      env: { ...process.env, ...npmSettings(cell, folder), ...cell.isOthers === true ? { HOME: join(folder, 'home') } : {}, OTHERS: String(owner), ...bin === undefined ? {} : { PATH: `${bin}${delimiter}${process.env['PATH'] ?? ''}` } }
    })
    const end = (): void => {
      if (child.pid === undefined) return
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // nothing of the group is left
      }
    }
    const late = setTimeout(end, TIMEOUT_MS)
    const [code, signal] = await once(child, 'exit')
    clearTimeout(late)
    end()
    return typeof code === 'number' ? code : String(signal)
  } finally {
    await file.close()
  }
}

function npmSettings ({ npm = 'host' }: Cell, folder: string): Readonly<Record<string, string>> {
  if (npm === 'host') return {}
  return { npm_config_userconfig: '/dev/null', npm_config_globalconfig: join(folder, 'none'), ...npm === 'empty' ? { npm_config_cache: join(folder, 'empty-cache') } : {} }
}
