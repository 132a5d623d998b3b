// The world outside of the test's "host": a network namespace with all origins and a DNS server, joined to the host by the device that is Berth's way out.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import type { Order, OriginsPlace, Passwords, Seen } from './origins/contract.ts'

/** The host's device on the way out. */
export const WAN = 'wan'
/** Addresses as the internet has them, since no others are let through; the two namespaces lead nowhere else. */
const NETWORK = '128.66.0'

export interface Outside extends OriginsPlace {
  /** every request that came to an origin, in its order */
  seen (): Promise<Seen[]>
  forget (): Promise<void>
  /** lets go the requests that `/held` keeps waiting, and all later ones */
  open (): Promise<void>
  /** what the origins let in from now on */
  change (passwords: Passwords): Promise<void>
}

/** Joins the namespace that this process is in with an outside; the test's end ends it. */
export async function openOutside (t: Test, passwords: Passwords): Promise<Outside> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-outside-'))
  // Also after a test that was asked to end, which has no teardown.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const program = fileURLToPath(new URL('origins/program.js', import.meta.url))
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--net', process.execPath, program], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }
  })
  const tell = createTeller(child)
  // It is in its own namespace as soon as it obeys.
  await tell({ do: 'seen' })
  await connect(child.pid ?? 0)
  const place = await tell({ do: 'start', network: NETWORK, folder, passwords }) as OriginsPlace
  return {
    ...place,
    seen: async () => await tell({ do: 'seen' }) as Seen[],
    forget: async () => { await tell({ do: 'forget' }) },
    open: async () => { await tell({ do: 'open' }) },
    change: async (changed) => { await tell({ do: 'passwords', passwords: changed }) }
  }
}

async function connect (pid: number): Promise<void> {
  const { run } = createHostCommands()
  const outside = `--net=/proc/${pid}/ns/net`
  await run('ip', ['link', 'set', 'lo', 'up'])
  await run('ip', ['link', 'add', WAN, 'type', 'veth', 'peer', 'name', WAN, 'netns', String(pid)])
  await run('ip', ['address', 'add', `${NETWORK}.1/24`, 'dev', WAN])
  await run('ip', ['link', 'set', WAN, 'up'])
  await run('nsenter', [outside, 'ip', 'link', 'set', 'lo', 'up'])
  // All of the network is its own: the origins then bind to addresses of it.
  await run('nsenter', [outside, 'ip', '-batch', '-'], { input: Array.from({ length: 60 }, (_, index) => `address add ${NETWORK}.${index + 2}/24 dev ${WAN}\n`).join('') })
  await run('nsenter', [outside, 'ip', 'link', 'set', WAN, 'up'])
  await run('ip', ['route', 'add', 'default', 'via', `${NETWORK}.2`])
}

function createTeller (child: ChildProcess): (order: Order) => Promise<unknown> {
  const waiting = new Map<number, { resolve (answer: unknown): void, reject (error: Error): void }>()
  let last = 0
  child.on('message', ({ id, answer, error }: { readonly id: number, readonly answer?: unknown, readonly error?: string }) => {
    const asker = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) asker?.resolve(answer)
    else asker?.reject(new Error(error))
  })
  child.on('exit', (code, signal) => { for (const { reject } of waiting.values()) reject(new Error(`the origins ended with ${code ?? signal ?? ''}`)) })
  return async (order) => await new Promise((resolve, reject) => {
    const id = ++last
    waiting.set(id, { resolve, reject })
    child.send({ id, order })
  })
}
