// The proxy with one worker against the proxy with two, and against another commit's build: the same load of two VMs, in turns.
import { join } from 'node:path'
import { createTestAuthority } from '../../test/proxy/helpers/authority.ts'
import { startNames } from '../../test/proxy/helpers/names.ts'
import { freePort } from '../../test/helpers/free-port.ts'
import { loopback } from '../../test/proxy/helpers/network.ts'
import { startProxy, vmPolicy, type TestProxy } from '../../test/proxy/helpers/proxy.ts'
import { processTree } from '../../test/helpers/process-tree.ts'
import { figureOf, print, series, takeTurns, type Series } from '../harness.ts'
import { askProgram, startServerProgram } from './child.ts'
import { residentMegabytes } from './memory.ts'

const HOST = 'api.good.test'
/** Their addresses belong to different workers. */
const GUESTS = [10, 11] as const
const CONNECTIONS_EACH = 25
const SECONDS = 4
const WARM_SECONDS = 1
const NOTE = `${GUESTS.length} VMs with ${CONNECTIONS_EACH} keep-alive connections each, GET of 100 bytes over TLS, ${SECONDS} s a run; client and origin are on the same processors`

interface Side { readonly rate: Series, readonly proxy: TestProxy }

/** @param before folder of another commit's checkout that is built, whose proxy is measured, too */
export async function compareWorkers (runs: number, before: string | undefined): Promise<void> {
  const authority = createTestAuthority()
  const port = await freePort(loopback(100))
  const origin = { address: loopback(100), port }
  const names = await startNames(loopback(2))
  names.records.set(HOST, [origin.address])
  const server = await startServerProgram('small-origin', { ...authority.issue('*.good.test'), place: origin })
  const sides: Side[] = []
  const start = async (name: string, options: { readonly workers: number } | { readonly program: string }): Promise<Side> => {
    const proxy = await startProxy({ roots: [authority.certificatePem], resolver: names.server, httpsPort: port, httpPort: 80, ...options })
    const side = { rate: series(name), proxy }
    sides.push(side)
    await proxy.policy(...GUESTS.map(last => vmPolicy(loopback(last), [{}])))
    return side
  }
  try {
    const one = await start('one worker', { workers: 1 })
    const two = await start('two workers', { workers: 2 })
    const earlier = before === undefined ? undefined : await start('the other build', { program: join(before, 'dist/proxy/main.js') })
    await takeTurns({ runs, sides: sides.map(({ rate, proxy }) => async (_run, keep) => keep(rate, await loadOf(proxy, `${HOST}:${port}`))) })
    print(figureOf('requests through two workers against one', 'requests/s', two.rate.values, { other: one.rate, ratioAtLeast: 1.2, note: NOTE }))
    if (earlier !== undefined) print(figureOf('requests through one worker against the other build', 'requests/s', one.rate.values, { other: earlier.rate, ratioAtLeast: 0.95, note: NOTE }))
    for (const { rate, proxy } of sides) {
      const each = await Promise.all(processTree(proxy.process.pid ?? 0).map(residentMegabytes))
      print(figureOf(`resident memory of each process: ${rate.name}`, 'MB', each, { note: 'the parent first; what processes share is counted in each' }))
    }
  } finally {
    for (const { proxy } of sides) await proxy.stop()
    server.kill()
    names.close()
  }
}

/** Requests per second of all VMs together. */
async function loadOf (proxy: TestProxy, host: string): Promise<number> {
  const ca = await proxy.ca()
  const each = await Promise.all(GUESTS.map(async last => {
    const way = { to: { address: proxy.address, port: proxy.ports.https }, ca, host, from: loopback(last) }
    return (await askProgram('load', { way, connections: CONNECTIONS_EACH, seconds: SECONDS, warmSeconds: WARM_SECONDS }))['perSecond'] ?? NaN
  }))
  return each.reduce((sum, rate) => sum + rate, 0)
}
