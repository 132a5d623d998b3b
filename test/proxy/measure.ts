// Figures of the proxy beside a bare forwarder (node:https to node:https, keep-alive, no checks), in turns, on this machine: `node dist/test/proxy/measure.js`.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, Agent, request } from 'node:https'
import { fileURLToPath } from 'node:url'
import { processTree } from '../helpers/process-tree.ts'
import { createTestAuthority } from './helpers/authority.ts'
import { freePort } from '../helpers/free-port.ts'
import { loopback } from './helpers/network.ts'
import { startNames } from './helpers/names.ts'
import { startProxy, vmPolicy } from './helpers/proxy.ts'

const HOST = 'api.good.test'
const SELF = fileURLToPath(import.meta.url)

interface Place { readonly address: string, readonly port: number }
interface Load { readonly to: Place, readonly ca: string, readonly connections: number, readonly seconds: number, readonly from?: string, readonly host: string }
interface Figures { readonly perSecond: number, readonly p50Ms: number, readonly p99Ms: number, readonly failed: number, readonly requests: number }

const role = process.argv[2]
if (role === 'origin') origin()
else if (role === 'bare') bare()
else if (role === 'load') load()
else await main()

interface Given extends Load {
  readonly cert: string
  readonly key: string
  readonly place: Place
}

/** What the process that started this one wants of it. */
function options (): Given {
  return JSON.parse(process.argv[3] ?? '{}')
}

function origin (): void {
  const { cert, key, place } = options()
  const body = Buffer.alloc(100, 'x')
  createServer({ cert, key }, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', 'content-length': body.length })
    response.end(body)
  }).listen(place.port, place.address, () => process.send?.('ready'))
}

function bare (): void {
  // A profile is written when a program ends by itself.
  process.once('SIGTERM', () => process.exit())
  const { cert, key, ca, place, to } = options()
  const agent = new Agent({ keepAlive: true, ca, servername: HOST })
  createServer({ cert, key }, (incoming, response) => {
    const outgoing = request({ agent, host: to.address, port: to.port, method: incoming.method, path: incoming.url, headers: incoming.headers }, answer => {
      response.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(response)
    })
    outgoing.on('error', () => response.destroy())
    incoming.pipe(outgoing)
  }).listen(place.port, place.address, () => process.send?.('ready'))
}

function load (): void {
  const { to, ca, connections, seconds, from, host } = options()
  const agent = new Agent({ keepAlive: true, maxSockets: connections, ca, servername: host.split(':')[0], ...(from === undefined ? {} : { localAddress: from }) })
  const times: number[] = []
  let failed = 0
  const start = performance.now()
  const until = start + seconds * 1000
  const warm = start + Math.min(1000, seconds * 250)
  let counted = 0
  let all = 0
  const one = () => new Promise<void>(resolve => {
    const began = performance.now()
    const outgoing = request({ agent, host: to.address, port: to.port, path: '/v1/things?id=1', headers: { host, accept: '*/*', 'user-agent': 'measure', authorization: 'Bearer mock' } }, answer => {
      if (answer.statusCode !== 200) failed++
      answer.resume()
      all++
      answer.on('end', () => {
        if (began > warm) {
          counted++
          times.push(performance.now() - began)
        }
        resolve()
      })
    })
    outgoing.on('error', () => { failed++; resolve() })
    outgoing.end()
  })
  const worker = async () => { while (performance.now() < until) await one() }
  void Promise.all(Array.from({ length: connections }, worker)).then(() => {
    times.sort((a, b) => a - b)
    const at = (part: number) => times[Math.floor(times.length * part)] ?? 0
    process.send?.({ perSecond: counted / (performance.now() - warm) * 1000, p50Ms: at(0.5), p99Ms: at(0.99), failed, requests: all })
    process.exit(0)
  })
}

async function child (name: string, given: unknown): Promise<ChildProcess> {
  const started = fork(SELF, [name, JSON.stringify(given)])
  if (name !== 'load') await once(started, 'message')
  return started
}

/** Processor time of a program so far, with all its processes, in hundredths of a second. */
function ticksOf (pid: number | undefined): number {
  return (pid === undefined ? [] : processTree(pid)).reduce((sum, each) => {
    const fields = readFileSync(`/proc/${each}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
    return sum + Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
  }, 0)
}

async function run (given: Load): Promise<Figures> {
  const started = await child('load', given)
  const [figures] = await once(started, 'message')
  return figures
}

async function main (): Promise<void> {
  const authority = createTestAuthority()
  const leaf = authority.issue(HOST)
  const at = { address: loopback(100), port: await freePort(loopback(100)) }
  const forwarder = { address: loopback(101), port: await freePort(loopback(101)) }
  const names = await startNames(loopback(2))
  names.records.set(HOST, [at.address])
  const originChild = await child('origin', { ...leaf, place: at })
  const bareChild = await child('bare', { ...leaf, ca: authority.certificatePem, place: forwarder, to: at })
  const proxy = await startProxy({ roots: [authority.certificatePem], resolver: names.server, httpsPort: at.port, httpPort: 80, nodeOptions: process.execArgv })
  const guest = loopback(10)
  await proxy.policy(vmPolicy(guest, [{}]))
  try {
    const seconds = Number(process.env['SECONDS_EACH'] ?? 4)
    const host = `${HOST}:${at.port}`
    const through = { to: { address: proxy.address, port: proxy.ports.https }, ca: await proxy.ca(), from: guest, host }
    const past = { to: forwarder, ca: authority.certificatePem, host }
    const direct = { to: at, ca: authority.certificatePem, host }
    const rounds = Number(process.env['ROUNDS'] ?? 3)
    for (const connections of [50, 1]) {
      for (let round = 0; round < rounds; round++) {
        for (const [name, way, pid] of [['direct', direct, originChild.pid], ['bare', past, bareChild.pid], ['berth-egress', through, proxy.process.pid]] as const) {
          const before = ticksOf(pid)
          const { perSecond, p50Ms, p99Ms, failed, requests } = await run({ ...way, connections, seconds })
          console.log(`${connections} connections  ${name.padEnd(13)} ${perSecond.toFixed(0).padStart(7)}/s  p50 ${p50Ms.toFixed(2)} ms  p99 ${p99Ms.toFixed(2)} ms  failed ${failed}  cpu ${((ticksOf(pid) - before) * 10_000 / requests).toFixed(0)} µs each`)
        }
      }
    }
  } finally {
    for (const started of [originChild, bareChild]) started.kill()
    names.close()
    await proxy.stop()
  }
}
