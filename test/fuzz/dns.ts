// DNS in each place where it comes from outside: what guests ask of the proxy, what servers answer the proxy's resolver, and the forwarder between hostile guests and a hostile server.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { BlockList, isIP } from 'node:net'
import { Refusal } from '../../proxy/contract/reasons.ts'
import { createResolver, type Resolve } from '../../proxy/upstream/resolver.ts'
import { createVet } from '../../proxy/contract/vet.ts'
import { loopback } from '../proxy/helpers/network.ts'
import { setStage, type Stage } from '../proxy/helpers/setup.ts'
import { workersOf } from '../proxy/helpers/workers.ts'
import type { Fuzz, FuzzResult, Random } from './fuzz.ts'
import { answersBytes, HEADER_BYTES, nameBytes, queryBytes, questionEnd } from './helpers/dns-bytes.ts'
import { askOnce, framed, sendTcp, sendUdp } from './helpers/dns-client.ts'
import { startForwarder } from './helpers/dns-forwarder.ts'
import { victimOf } from './helpers/dns-names.ts'
import { Hold } from './helpers/hold.ts'
import { watchUnhandled } from './helpers/unhandled.ts'

type Case = (random: Random) => Promise<FuzzResult>

const PATIENCE_MS = 15
const RESOLVE_MS = 40
const LATE_MS = 5_000
const MAX_TTL_MS = 60_000
const RIGHT_QUERY = Buffer.concat([Buffer.from('123401000001000000000000', 'hex'), nameBytes('name.test'), Buffer.from([0, 1, 0, 1])])
const MADE_UP = new BlockList()
MADE_UP.addSubnet('198.18.0.0', 15)

const shown = (messages: readonly Buffer[]): string => messages.map(message => message.toString('hex')).join(' ')

/** What is wrong with an answer of the proxy to one of these questions. */
function answerFault (answer: Buffer, queries: readonly Buffer[]): string | undefined {
  const text = answer.toString('hex')
  if (answer.length < HEADER_BYTES || (answer.readUInt16BE(2) & 0x8000) === 0) return `no answer: ${text}`
  const query = queries.find(each => each.length >= HEADER_BYTES && each.readUInt16BE(0) === answer.readUInt16BE(0))
  // Over TCP a wrong length makes other messages of them.
  if (query === undefined) return `nobody asked: ${text}`
  const records = answer.readUInt16BE(6)
  if (records === 0) return answer.length <= query.length ? undefined : `longer than the question: ${text}`
  const end = questionEnd(answer)
  const address = answer.length < 4 ? '' : answer.subarray(-4).join('.')
  if (records !== 1 || end === undefined || answer.length !== end + 16 || answer.readUInt16BE(end - 4) !== 1) return `not one address: ${text}`
  return MADE_UP.check(address) ? undefined : `an address of somebody: ${text}`
}

async function startProxyAttack (stage: Stage): Promise<Case> {
  const place = { host: stage.proxy.address, port: stage.proxy.ports.dns }
  const holds = [stage.proxy.process.pid ?? 0, ...(await workersOf(stage.proxy)).map(({ pid }) => pid)].map(pid => new Hold(pid))
  let cases = 0
  return async random => {
    const overTcp = random.once(3)
    const queries = [queryBytes(random, 'name.test'), ...random.many(4, () => queryBytes(random, 'other.test'))]
    const pieces = framed(random, queries)
    for (const hold of holds) hold.begin()
    const from = { ...place, from: stage.guest }
    const answers = overTcp ? await sendTcp(from, pieces, PATIENCE_MS) : await sendUdp(from, queries, PATIENCE_MS)
    const output = stage.proxy.output()
    const isLying = overTcp && !Buffer.concat(pieces).equals(Buffer.concat(queries.flatMap(query => [Buffer.from([query.length >> 8, query.length & 255]), query])))
    const fault = /a worker has ended|a fault of the proxy|a DNS query could not be read|the DNS socket failed/.test(output)
      ? output.slice(-2_000)
      : holds.map(hold => hold.fault()).find(each => each !== undefined) ??
        (isLying ? undefined : answers.map(answer => answerFault(answer, queries)).find(each => each !== undefined)) ??
        (++cases % 20 !== 0 || (await askOnce({ ...place, from: loopback(11) }, RIGHT_QUERY))?.readUInt16BE(6) === 1 ? undefined : 'another VM is not answered')
    return { input: `the proxy over ${overTcp ? 'TCP' : 'UDP'}: ${shown(overTcp ? pieces : queries)}`, ...fault === undefined ? {} : { fault } }
  }
}

/** One name, asked for while the server plays a case; what is wrong with what the resolver makes of it. */
async function resolveFault (resolve: Resolve, name: string): Promise<string | undefined> {
  const begun = performance.now()
  try {
    const { addresses, ttlMs } = await resolve(name)
    if (addresses.length === 0 || addresses.some(address => isIP(address) === 0)) return `these are no addresses: ${JSON.stringify(addresses)}`
    if (!(ttlMs > 0 && ttlMs <= MAX_TTL_MS)) return `an answer holds for ${ttlMs} ms`
    const vet = createVet({ allow: [], deny: [] }, () => false)
    // What nobody may reach has a reason, whatever its form.
    for (const address of addresses) if (vet(address) === undefined && /^(?:127|10|169\.254|0)\.|^::/.test(address)) return `${address} may be dialled`
  } catch (error) {
    if (!(error instanceof Refusal)) return `nobody expects ${String(error)}`
  }
  const tookMs = performance.now() - begun
  return tookMs > LATE_MS ? `it took ${Math.round(tookMs)} ms` : undefined
}

async function startResolverAttack (atEnd: (work: () => unknown) => void): Promise<Case> {
  const socket = createSocket('udp4')
  socket.bind(0, loopback(3))
  await once(socket, 'listening')
  atEnd(() => { socket.close() })
  let play: (query: Buffer) => readonly Buffer[] = () => []
  const sent: Buffer[] = []
  socket.on('message', (query, from) => {
    for (const bytes of play(query)) {
      sent.push(bytes)
      socket.send(bytes, from.port, from.address)
    }
  })
  socket.on('error', () => {})
  const unhandled = watchUnhandled(atEnd)
  const hold = new Hold()
  let names = 0
  return async random => {
    const resolve = createResolver({ servers: [`${loopback(3)}:${socket.address().port}`], timeoutMs: RESOLVE_MS, ipv6: random.once(2) })
    sent.splice(0)
    play = query => answersBytes(random, query, victimOf(0))
    hold.begin()
    const fault = await resolveFault(resolve, `n${names++}.evil.test`) ?? unhandled() ?? hold.fault()
    return { input: `the resolver is answered: ${shown(sent)}`, ...fault === undefined ? {} : { fault } }
  }
}

export const fuzz: Fuzz = {
  seeds: [],
  async start (atEnd) {
    const stage = await setStage({ teardown: atEnd }, { limits: { dnsPerSecond: 1_000_000 } })
    await stage.proxy.policy(...[stage.guest, loopback(11)].map(address => ({ id: `vm-${address}`, address, epoch: '1', mode: 'all' as const, rules: [] })))
    const proxy = await startProxyAttack(stage)
    const resolver = await startResolverAttack(atEnd)
    const forwarder = await startForwarder(atEnd)
    const cases: readonly Case[] = [proxy, resolver, ...forwarder === undefined ? [] : [forwarder.case, forwarder.case]]
    return async random => await random.pick(cases)(random)
  }
}
