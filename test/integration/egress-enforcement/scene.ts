// What the tests of enforcement have: a server in a "host" of its own with a far side, and hostile guests in real VMs.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { runCommand } from '../../helpers/exec.ts'
import { testFolder } from '../../helpers/folder.ts'
import { busyboxImage, push } from '../../helpers/images.ts'
import { createShell, waitFor } from '../../helpers/machine.ts'
import { installedProgram } from '../../helpers/installed-program.ts'
import { ownNetwork } from '../../helpers/own-network.ts'
import { compileProgram } from '../../helpers/program.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'
import { API, NAME_SERVER } from './far/contract.ts'
import { openFar, WAN, type Far } from './far/far.ts'

/** the value that only `API.host` may see, and what guests have in its place */
export const SECRET = `secret${randomBytes(16).toString('hex')}`
export const MOCK = 'mock-API_KEY'

export type Mode = 'none' | 'all' | 'http_https_only'

export interface Scene {
  readonly server: TestServer
  readonly far: Far
  readonly image: string
  /** name of the guests' namespace */
  readonly namespace: string
  readonly gateway: string
  /** `10.1.2.0/24` */
  readonly cidr: string
}

export interface Guest {
  readonly id: string
  readonly ip: string
  readonly mac: string
  /** Runs a line of shell and gives what it printed, however it ended. */
  run (script: string): Promise<string>
}

/** One attempt of the program `probe`. */
export interface Attempt {
  readonly target: string
  /** `open`, `silence` or the name of an error */
  readonly outcome: string
  readonly elapsedMs: number
  /** what came by itself */
  readonly words: string
}

const commands = createHostCommands()

/** @param prefix length of the guests' network @param plugins further settings, by plugin */
export async function setScene (t: Test, prefix = 24, plugins: Readonly<Record<string, { readonly config: Readonly<Record<string, unknown>> }>> = {}): Promise<Scene> {
  const { namespace, cidr } = ownNetwork()
  // After a failure, and after a test that ended a server by force: one that stops in order removes it.
  t.teardown(async () => { if (existsSync(`/run/netns/${namespace}`)) await commands.run('ip', ['netns', 'delete', namespace]) })
  const far = await openFar(t)
  const base = cidr.replace('.0/24', '')
  const folder = testFolder(t, { 'roots.pem': far.authority })
  const server = await startTestServer(t, {
    plugins: {
      networking: { config: { uplink: WAN, namespace, cidr: `${base}.0/${prefix}`, dns: { servers: [NAME_SERVER] } } },
      egress: { config: { roots: [join(folder, 'roots.pem')] } },
      ...plugins
    }
  })
  const probe = await compileProgram(await readFile(join(packageRoot, 'test/integration/egress-enforcement/probe.c'), 'utf8'))
  const image = await push(server, await busyboxImage({ Env: ['PATH=/bin:/usr/bin'] }, [...await installedProgram('/usr/bin/curl'), { path: 'bin/probe', content: probe, mode: 0o755 }]), 'egress/probe:latest')
  return { server, far, image, namespace, gateway: `${base}.1`, cidr: `${base}.0/${prefix}` }
}

/** The `network`, `env` and `credentials` of a request. @param secret `null`: no credential */
export function mediated (mode: Mode, secret: string | null = SECRET) {
  if (mode === 'none') return {}
  const network = { egress: { enabled: true, enforcement: { mode } } }
  if (secret === null) return { network }
  return { network, env: { REAL: secret }, credentials: { API_KEY: { source: { env: 'REAL' }, inject: [{ hosts: [API.host], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } } }
}

/** Boots a guest that runs a script, or waits. */
export async function addGuest ({ server, image }: Scene, name: string, request: ReturnType<typeof mediated>, script = 'sleep 100000'): Promise<Guest> {
  const { id } = await createShell(server, image, script, { name, ...request })
  return await guestOf(server, id)
}

/** A guest that runs, or is about to. */
export async function guestOf (server: TestServer, id: string): Promise<Guest> {
  const { network } = await waitFor(server, id, 'Running')
  const { ip, mac } = network ?? {}
  if (typeof ip !== 'string' || typeof mac !== 'string') throw new Error('the instance has no network')
  return { id, ip, mac, run: async (script) => (await runCommand(server, id, { command: ['/bin/sh', '-c', `exec 2>&1; ${script}`] })).stdout }
}

/** What comes of connections, or datagrams, to these places; all from one program in the guest. */
export async function attempt (guest: Guest, protocol: 'tcp' | 'udp', targets: readonly string[], from?: string): Promise<Attempt[]> {
  const printed = await guest.run(`probe ${protocol} ${from === undefined ? '' : `from ${from} `}${targets.join(' ')}`)
  const attempts = printed.trim().split('\n').map((line): Attempt => {
    const [target = '', outcome = '', elapsed = '', ...words] = line.split(' ')
    return { target, outcome, elapsedMs: Number(elapsed), words: words.join(' ').trim() }
  })
  if (attempts.length !== targets.length) throw new Error(`probe in the guest: ${printed}`)
  return attempts
}

/** A request of a guest: the body of an answer 200, any other status as `status 403`, and a failure in curl's own words. */
export async function fetchFrom (guest: Guest, url: string, ...headers: readonly string[]): Promise<string> {
  const printed = await guest.run(`curl -sS -m 60 -w '\\n%{http_code}' ${headers.map((header) => `-H '${header}'`).join(' ')} '${url}'`)
  const [status = '', ...body] = printed.trim().split('\n').reverse()
  return status === '200' || status === '000' ? body.reverse().join('\n') : `status ${status}`
}

/** What is dropped and not refused takes a minute or more, even where a guest has to wait for its processor. */
const REFUSED_MS = 5000

/** Asserts that each attempt was refused, and quickly: nobody waits for what is not allowed. */
export function refused (t: Test, attempts: readonly Attempt[], what: string, errors: readonly string[] = ['ECONNREFUSED']): void {
  for (const { target, outcome, elapsedMs } of attempts) t.ok(errors.includes(outcome) && elapsedMs < REFUSED_MS, `${what}: ${target}: ${outcome} after ${elapsedMs} ms`)
}

/** Asserts that a guest's request gets through with the real value in place of the mock. */
export async function mediates (t: Test, { far }: Scene, guest: Guest, what: string, secret = SECRET): Promise<void> {
  const path = `/${randomBytes(8).toString('hex')}`
  t.equal(await fetchFrom(guest, `https://${API.host}${path}`, `Authorization: Bearer ${MOCK}`), `hello from ${API.host}`, `${what}: an answer`)
  const seen = (await far.seen()).filter(({ url }) => url === path)
  t.same(seen.map(({ authorization }) => authorization), [`Bearer ${secret}`], `${what}: with the real value`)
}

/** Process ids of the egress proxy in the guests' namespace. */
export async function proxiesOf ({ namespace }: Pick<Scene, 'namespace'>): Promise<number[]> {
  const pids = (await commands.run('ip', ['netns', 'pids', namespace])).stdout.split('\n').filter((line) => line !== '').map(Number)
  const found = await Promise.all(pids.map(async (pid) => (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).includes('proxy/main.js') ? [pid] : []))
  return found.flat()
}
