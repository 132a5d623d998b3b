// Starts everything that is measured: one origin, and every way to it. All of it is on the loopback of the benchmark's own network namespace.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'
import { createTestAuthority } from '../../test/proxy/helpers/authority.ts'
import { startNames } from '../../test/proxy/helpers/names.ts'
import { freePort } from '../../test/helpers/free-port.ts'
import { loopback } from '../../test/proxy/helpers/network.ts'
import { startProxy, vmPolicy, type TestProxy } from '../../test/proxy/helpers/proxy.ts'
import { startServerProgram, type Place, type Way } from './child.ts'
import { startMitmproxy } from './rivals.ts'

export interface Stage {
  readonly port: number
  /** ways to the origin that speaks HTTP/1.1 */
  readonly ways: Readonly<Record<'direct' | 'egress' | 'bare' | 'pipe' | 'mitmproxy' | 'mockttp', Way>>
  /** ways to the origin that speaks HTTP/2 */
  readonly http2Ways: Readonly<Record<'direct' | 'egress' | 'pipe', Way>>
  readonly proxy: TestProxy
  /** Returns names that no client has asked for yet. */
  newNames (count: number): string[]
  stop (): Promise<void>
}

const domain = 'good.test'
const host = `api.${domain}`
const http2Host = `h2.${domain}`

/** Starts everything; `folder` already has mockttp in `mockttp`. */
export async function setStage (folder: string): Promise<Stage> {
  const authority = createTestAuthority()
  const leaf = authority.issue(`*.${domain}`)
  const ca = authority.certificatePem
  const port = await freePort(loopback(100))
  const at = (last: number): Place => ({ address: loopback(last), port })
  const [origin, http2Origin] = [at(100), at(101)]
  const names = await startNames(loopback(2))
  names.records.set(host, [origin.address])
  names.records.set(http2Host, [http2Origin.address])
  const children: ChildProcess[] = []
  await hostsFile(folder, origin.address)
  const server = async (name: string, given: object) => { children.push(await startServerProgram(name, { ...leaf, ca, ...given })) }
  await server('origin', { place: origin, http2: false })
  await server('origin', { place: http2Origin, http2: true })
  await server('bare', { place: at(102), to: origin, host })
  await server('pipe', { place: at(103), to: origin, host, http2: false })
  await server('pipe', { place: at(104), to: http2Origin, host: http2Host, http2: true })
  const caFile = join(folder, 'origins.pem')
  await writeFile(caFile, ca)
  await mkdir(join(folder, 'mitmproxy'))
  const mitmproxy = await startMitmproxy(join(folder, 'mitmproxy'), at(105), caFile)
  children.push(mitmproxy.process)
  const mockttpPort = await freePort('127.0.0.1')
  const mockttp = fork(new URL('programs/mockttp.js', import.meta.url), [JSON.stringify({ folder: join(folder, 'mockttp'), port: mockttpPort })], { stdio: ['ignore', 2, 'inherit', 'ipc'] })
  children.push(mockttp)
  const [{ cert: mockttpCa }] = await once(mockttp, 'message')
  const proxy = await startProxy({ roots: [ca], resolver: names.server, httpsPort: port, httpPort: 80 })
  const guest = loopback(10)
  // A rule for the host, one for others, and a wildcard, as in a real policy.
  await proxy.policy(vmPolicy(guest, [{}, { hosts: [`*.${domain}`], header: 'X-Token', credential: 'TOKEN' }, { hosts: ['other.test'] }]))
  const through = { to: { address: proxy.address, port: proxy.ports.https }, ca: await proxy.ca(), from: guest }
  const written = `${host}:${port}`
  const http2Written = `${http2Host}:${port}`
  let named = 0
  return {
    port,
    proxy,
    ways: {
      direct: { to: origin, ca, host: written },
      egress: { ...through, host: written },
      bare: { to: at(102), ca, host: written },
      pipe: { to: at(103), ca, host: written },
      mitmproxy: { to: at(105), ca: mitmproxy.ca, host: written, connect: origin },
      // From an address that mockttp's own connections never have: it compares address and port, and would sometimes take a client for itself and report a loop.
      mockttp: { to: { address: '127.0.0.1', port: mockttpPort }, from: guest, ca: mockttpCa, host: written, connect: { address: host, port } }
    },
    http2Ways: {
      direct: { to: http2Origin, ca, host: http2Written },
      egress: { ...through, host: http2Written },
      pipe: { to: at(104), ca, host: http2Written }
    },
    newNames (count) {
      const fresh = Array.from({ length: count }, () => `n${named++}.${domain}`)
      for (const name of fresh) names.records.set(name, [origin.address])
      return fresh
    },
    async stop () {
      for (const child of children) child.kill()
      names.close()
      await proxy.stop()
    }
  }
}

/** mockttp resolves names with the system's resolver and its own cache: in this program's own mount namespace, the system knows the origin. */
async function hostsFile (folder: string, address: string): Promise<void> {
  const file = join(folder, 'hosts')
  await writeFile(file, `127.0.0.1 localhost\n${address} ${host}\n`)
  await createHostCommands().run('mount', ['--bind', file, '/etc/hosts'])
}
