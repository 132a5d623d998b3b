// Runs in the namespace of a machine's guests, beside its real proxy: an origin, names, a guest that asks without a pause, and the server's part of the control
// socket. Orders come as lines; the answer to each is a line of JSON.
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { connect as connectTcp } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { Resolver } from 'node:dns/promises'
import { createInterface } from 'node:readline'
import { buffer, text } from 'node:stream/consumers'
import { createTestAuthority } from '../proxy/helpers/authority.ts'
import { startNames } from '../proxy/helpers/names.ts'
import { startOrigin } from '../proxy/helpers/origin.ts'

const [rootFile = '', gateway = '', httpsPort = '', httpPort = '', dnsPort = '', controlPath = ''] = process.argv.slice(2)
const GUEST = '127.9.0.10'
const ORIGIN = '127.9.0.100'
const HOST = 'api.good.test'
const WORKERS = 4

const authority = createTestAuthority()
await writeFile(rootFile, authority.certificatePem)
const names = await startNames('127.9.0.2')
names.records.set(HOST, [ORIGIN])
const origin = await startOrigin({ address: ORIGIN, port: 443, hosts: [HOST], authority })

let revision = 1_000_000
let ca = ''
let served = 0
const failures: string[] = []
const stop = new AbortController()
let workers: Promise<void>[] = []

async function control (method: string, path: string, body?: unknown): Promise<string> {
  const outgoing = request({ socketPath: controlPath, method, path }).end(body === undefined ? undefined : JSON.stringify(body))
  const answered = once(outgoing, 'response')
  const [response] = await answered
  const said = await text(response)
  if (response.statusCode !== 200) throw new Error(`${method} ${path}: ${response.statusCode} ${said}`)
  return said
}

async function allow (): Promise<void> {
  const rule = { credential: 'API_KEY', hosts: [HOST], header: 'Authorization', format: 'Bearer ${value}', value: 'a-secret-of-a-test', mock: 'mock-API_KEY' }
  await control('PUT', '/policy', { revision: ++revision, vms: [{ id: 'vm-1', address: GUEST, epoch: '1', mode: 'all', rules: [rule] }] })
  ca = await control('GET', '/ca')
}

/** One connection with one request, as the redirect would deliver it. */
async function askTls (): Promise<string> {
  const tcp = connectTcp({ host: gateway, port: Number(httpsPort), localAddress: GUEST })
  await once(tcp, 'connect')
  const socket = connectTls({ socket: tcp, servername: HOST, ca })
  socket.write(`GET / HTTP/1.1\r\nHost: ${HOST}\r\nConnection: close\r\n\r\n`)
  return (await buffer(socket)).toString()
}

async function askPlain (): Promise<string> {
  const socket = connectTcp({ host: gateway, port: Number(httpPort), localAddress: GUEST })
  // No host at all: the proxy itself answers, and says so.
  socket.end('GET / HTTP/1.1\r\nConnection: close\r\n\r\n')
  return (await buffer(socket)).toString()
}

async function askDns (): Promise<string> {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  resolver.setLocalAddress(GUEST)
  resolver.setServers([`${gateway}:${dnsPort}`])
  return (await resolver.resolve4('anything.test')).join()
}

/** The same over TCP: one question, with its length in front. */
async function askDnsTcp (): Promise<number> {
  const socket = connectTcp({ host: gateway, port: Number(dnsPort), localAddress: GUEST })
  const question = Buffer.from('1234010000010000000000000861 6e797468696e67 0474657374 00 0001 0001'.replaceAll(' ', ''), 'hex')
  socket.write(Buffer.concat([Buffer.from([0, question.length]), question]))
  const [answer]: Buffer[] = await once(socket, 'data')
  socket.destroy()
  return answer?.readUInt16BE(8) ?? 0
}

async function work (): Promise<void> {
  while (!stop.signal.aborted) {
    try {
      const answer = await askTls()
      if (answer.startsWith('HTTP/1.1 200 ')) served++
      else failures.push(answer)
    } catch (error) {
      failures.push(String(error))
    }
  }
}

const orders: Record<string, () => Promise<unknown>> = {
  allow: async () => { await allow() },
  plain: askPlain,
  dns: askDns,
  'dns-tcp': askDnsTcp,
  load: async () => { workers = Array.from({ length: WORKERS }, work) },
  count: async () => ({ served, failures: failures.slice(0, 5), authorization: origin.seen.at(-1)?.headers.authorization }),
  stop: async () => {
    stop.abort()
    await Promise.all(workers)
    return { served, failures: failures.slice(0, 5) }
  }
}

process.stdout.write(`${JSON.stringify(names.server)}\n`)
for await (const line of createInterface({ input: process.stdin })) {
  const answer = await orders[line]?.().catch((error: unknown) => ({ error: String(error) }))
  process.stdout.write(`${JSON.stringify(answer ?? null)}\n`)
}
process.exit(0)
