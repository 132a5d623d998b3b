// A real ACME authority of one's own: pebble, with a DNS server that says of every name that it is this host.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { makeAuthority } from '../core/tls/certificates.ts'
import { freePort } from './free-port.ts'
import { eventually } from './eventually.ts'

export interface Pebble {
  readonly directory: string
  /** PEM file of who vouches for the directory */
  readonly authority: string
  /** PEM of who vouches for the certificates that it issues */
  readonly root: string
  /** `host:port` of its DNS server */
  readonly dns: string
  /** sets records of that: POST /set-txt, /set-default-ipv4 */
  readonly dnsControl: string
  readonly log: () => string
  /** Nobody answers any more. */
  stop (): Promise<void>
}

export interface PebbleOptions {
  /** where hosts answer challenges */
  readonly httpPort: number
  readonly validSeconds?: number
}

export function noPebble (): string | false {
  const missing = ['lego', 'pebble'].find((name) => !existsSync(`/usr/bin/${name}`))
  return missing === undefined ? false : `the command ${missing} is missing; install the package ${missing}`
}

export async function startPebble (t: Test, { httpPort, validSeconds = 7 * 86_400 }: PebbleOptions): Promise<Pebble> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-pebble-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const own = await makeAuthority(folder)
  const { certificate, key: privateKey } = await own.issue('pebble')
  const [api = 0, management = 0, dns = 0, control = 0] = await Promise.all([1, 2, 3, 4].map(async () => await freePort('127.0.0.1')))
  await writeFile(join(folder, 'pebble.json'), JSON.stringify({
    pebble: {
      listenAddress: `127.0.0.1:${api}`, managementListenAddress: `127.0.0.1:${management}`, certificate, privateKey, httpPort, tlsPort: 1, ocspResponderURL: '', externalAccountBindingRequired: false,
      certificateValidityPeriod: validSeconds
    }
  }))
  const output: string[] = []
  const children: ChildProcess[] = []
  const run = (words: readonly string[]): void => {
    // It waits up to 15 s before it looks at an answer, and refuses some good nonces, unless it is told not to.
    const child = spawn('setpriv', ['--pdeathsig', 'KILL', ...words], { stdio: ['ignore', 'pipe', 'pipe'], env: { PATH: '/usr/bin:/bin', PEBBLE_VA_NOSLEEP: '1', PEBBLE_WFE_NONCEREJECT: '0', PEBBLE_AUTHZREUSE: '0' } })
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (words: string) => { output.push(words) })
    children.push(child)
  }
  run(['pebble-challtestsrv', '-defaultIPv4', '127.0.0.1', '-defaultIPv6', '', '-dns01', `127.0.0.1:${dns}`, '-http01', '', '-https01', '', '-tlsalpn01', '', '-management', `127.0.0.1:${control}`])
  run(['pebble', '-config', join(folder, 'pebble.json'), '-dnsserver', `127.0.0.1:${dns}`])
  const stop = async (): Promise<void> => {
    for (const child of children) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const exited = once(child, 'exit')
      child.kill('SIGKILL')
      await exited
    }
  }
  t.teardown(stop)
  const ca = await readFile(own.file, 'utf8')
  const root = await eventually('the authority', async () => await get(`https://127.0.0.1:${management}/roots/0`, ca).catch(() => undefined), { limitMs: 30_000, explain: () => output.join('') })
  return { directory: `https://127.0.0.1:${api}/dir`, authority: own.file, root, dns: `127.0.0.1:${dns}`, dnsControl: `http://127.0.0.1:${control}`, log: () => output.join(''), stop }
}

async function get (url: string, ca: string): Promise<string> {
  const asked = request(url, { ca, agent: false })
  asked.end()
  const [response] = await once(asked, 'response')
  return await text(response)
}
