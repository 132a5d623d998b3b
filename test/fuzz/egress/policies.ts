// Policies as the proxy's control socket takes them, and those of POST /instances that are to become part of one: each is refused with its place, or in force for everybody.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { connect as connectTls } from 'node:tls'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { BerthError } from '../../../core/errors/define.ts'
import { createSecrets } from '../../../core/secrets/secrets.ts'
import { composeVm } from '../../../plugins/egress/policy/compose.ts'
import { prepareSpec } from '../../../plugins/egress/policy/spec.ts'
import { Credential } from '../../../plugins/instances/api/schemas.ts'
import type { PolicyRevision } from '../../../proxy/contract/control.ts'
import { CompiledPolicy } from '../../../proxy/gate/host-rules.ts'
import { parseRevision } from '../../../proxy/parent/parse-revision.ts'
import { holds, rangeList } from '../../../proxy/contract/ranges.ts'
import { exchangeBytes, openPlain } from '../../proxy/helpers/guest.ts'
import { loopback } from '../../proxy/helpers/network.ts'
import type { TestOrigin } from '../../proxy/helpers/origin.ts'
import { setStage, type Stage } from '../../proxy/helpers/setup.ts'
import { workersOf } from '../../proxy/helpers/workers.ts'
import type { Fuzz, FuzzResult, Random } from '../fuzz.ts'
import { Hold } from '../helpers/hold.ts'
import { disturb, jsonText, oddValue, type Json } from '../helpers/policy-values.ts'
import { rawCall } from '../helpers/raw-call.ts'

const HOST = 'api.good.test'
const PATIENCE_MS = 20_000
const SHOWN = 3_000
const SECRET = 's3cr3t-of-a-case'
/** a place, a colon, and what is wrong there */
const NAMED = /^(?:the revision|[A-Za-z_"][ -~]*): ./

const ORIGIN = loopback(100)
/** two VMs, whose addresses belong to different workers */
const GUESTS = [loopback(10), loopback(11)] as const

function revisionOf (random: Random, revision: number): Json {
  const rule = (value: string, more: { [key: string]: Json } = {}): Json => ({ credential: 'A', hosts: [HOST], header: 'x-probe', format: 'v ${value}', value, mock: 'mock-A', ...more })
  const others = random.many(2, (): Json => ({ id: `o${random.below(3)}`, address: `10.1.0.${random.below(3)}`, epoch: '1', mode: 'all', rules: [rule(SECRET, random.once(2) ? { hosts: ['*.good.test', 'a.b'] } : {})] }))
  const vms = GUESTS.map((address): Json => ({ id: `vm-${address}`, address, epoch: '1', mode: random.pick(['all', 'http_https_only']), rules: [rule(`${SECRET}-${revision}`)] }))
  return { revision, ...random.once(2) ? { denied: ['10.9.0.0/16'] } : {}, vms: [...vms, ...others] }
}

function parsed (text: Buffer): PolicyRevision | undefined {
  try {
    return parseRevision(JSON.parse(text.toString()))
  } catch {
    return undefined
  }
}

/** Whether a value stands in the place of a name, too: then it is told as one. */
function isNamedLikeValue (revision: PolicyRevision): boolean {
  return JSON.stringify(revision, (key, value: unknown) => key === 'value' ? undefined : value).includes(SECRET)
}

async function askOnce (stage: Stage, guest: string): Promise<string> {
  try {
    const tcp = await openPlain(stage.proxy, guest, stage.proxy.ports.https)
    // Whoever has no policy is let go at once.
    if (await Promise.race([once(tcp, 'close'), delay(5)]) !== undefined) return 'closed'
    const socket = connectTls({ socket: tcp, servername: HOST, rejectUnauthorized: false })
    socket.on('error', () => socket.destroy())
    const text = await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${stage.host(HOST)}\r\nConnection: close\r\n\r\n`)
    socket.destroy()
    return text
  } catch (error) {
    return String(error)
  }
}

/** Whether a VM's request goes out as this revision says. */
async function isEnforced (stage: Stage, origin: TestOrigin, guest: string, revision: PolicyRevision): Promise<string | undefined> {
  const vm = revision.vms.find(({ address }) => address === guest)
  const rules = vm === undefined ? undefined : new CompiledPolicy(vm, revision.revision).rulesFor(HOST)
  const before = origin.seen.length
  const late = new AbortController()
  const said = await Promise.race([askOnce(stage, guest), delay(PATIENCE_MS, 'silence', { signal: late.signal }).catch(() => '')])
  late.abort()
  const seen = origin.seen[before]
  // A revision of which bytes were changed may be a right one that bars where the origin is.
  const isBarred = holds(rangeList(revision.denied ?? []), ORIGIN) || revision.vms.some(({ address }) => address === ORIGIN)
  if (rules === undefined || rules.unavailable || isBarred) return seen === undefined ? undefined : `${guest} has no way out in force, and reached the origin`
  if (seen === undefined) return `${guest} has a policy and did not reach the origin: ${said}`
  const wrong = rules.injections.find(({ header, value }) => seen.headers[header.toLowerCase()] !== value)
  return wrong === undefined ? undefined : `${guest} reached the origin with ${wrong.header} ${seen.headers[wrong.header.toLowerCase()]} instead of ${wrong.value}`
}

class ControlSocket {
  readonly #stage: Stage
  readonly #origin: TestOrigin
  readonly #holds: readonly Hold[]
  #inForce: PolicyRevision = { revision: 0, vms: [] }
  #revision = 0

  constructor (stage: Stage, origin: TestOrigin, holds: readonly Hold[]) {
    this.#stage = stage
    this.#origin = origin
    this.#holds = holds
  }

  async begin (): Promise<void> {
    this.#inForce = { revision: JSON.parse((await this.#stage.proxy.call('GET', '/policy')).body).revision + 1, vms: [] }
    this.#revision = this.#inForce.revision
    await this.#put(Buffer.from(JSON.stringify(this.#inForce)))
  }

  async case (random: Random): Promise<FuzzResult> {
    if (random.once(12)) return await this.#otherRoute(random)
    let value = disturb(random, revisionOf(random, ++this.#revision), 2)
    // A right number that is far away would be the last one.
    if (value !== null && typeof value === 'object' && !Array.isArray(value) && Number.isSafeInteger(value['revision']) && Number(value['revision']) > this.#revision) value = { ...value, revision: this.#revision }
    const body = jsonText(random, value)
    const input = body.toString('latin1').slice(0, SHOWN)
    const found = parsed(body)
    if (found !== undefined && isNamedLikeValue(found)) return { input }
    const fault = await this.#put(body) ?? await this.#inForceFault(random)
    return { input, ...fault === undefined ? {} : { fault } }
  }

  async #put (body: Buffer): Promise<string | undefined> {
    for (const hold of this.#holds) hold.begin()
    const answer = await rawCall({ socketPath: this.#socket }, { method: 'PUT', path: '/policy', body }, PATIENCE_MS)
    if (typeof answer === 'string') return answer
    for (const hold of this.#holds) if (hold.fault() !== undefined) return hold.fault()
    if (answer.text.includes(SECRET)) return `the answer holds a value: ${answer.text}`
    const found = parsed(body)
    if (answer.status === 200) {
      if (found === undefined) return 'it was taken, and is none'
      this.#inForce = found
      this.#revision = found.revision
      return undefined
    }
    if (answer.status === 409) return found !== undefined && found.revision < this.#inForce.revision ? undefined : `409 ${answer.text}`
    if (answer.status !== 400 || found !== undefined) return `${answer.status} ${answer.text}`
    return NAMED.test(String(JSON.parse(answer.text).message)) ? undefined : `no place is named: ${answer.text}`
  }

  async #otherRoute (random: Random): Promise<FuzzResult> {
    const odd = encodeURIComponent(Buffer.from(String(oddValue(random)).slice(0, 300)).toString())
    const call = { method: random.pick(['GET', 'PUT', 'POST', 'DELETE', 'OPTIONS']), path: random.pick(['/policy', '//', '///policy', '/audit', `/audit?vm=${odd}`, `/audit?vm=a&after=${odd}&limit=${odd}`, `/audit?vm=vm-${GUESTS[0]}&limit=1`, '/ca', '/metrics', '/health', '/%', '*', 'http://x/policy', 'http://[', `/${odd}`]) }
    const answer = await rawCall({ socketPath: this.#socket }, call, PATIENCE_MS)
    const isWrong = typeof answer === 'string' || answer.status >= 500 || answer.text.includes(SECRET)
    return { input: `${call.method} ${call.path}`, ...isWrong ? { fault: JSON.stringify(answer) } : {} }
  }

  async #inForceFault (random: Random): Promise<string | undefined> {
    const { status, body } = await this.#stage.proxy.call('GET', '/policy')
    const said = JSON.parse(body)
    if (status !== 200 || said.revision !== this.#inForce.revision || said.vms !== this.#inForce.vms.length) return `${body} is in force instead of ${this.#inForce.revision} with ${this.#inForce.vms.length} VMs`
    if (!random.once(3)) return undefined
    for (const guest of GUESTS) {
      const fault = await isEnforced(this.#stage, this.#origin, guest, this.#inForce)
      if (fault !== undefined) return fault
    }
    this.#origin.seen.length = 0
    const output = this.#stage.proxy.output()
    return output.includes('a fault of the proxy') || output.includes('a worker has ended') ? output.slice(-SHOWN) : undefined
  }

  get #socket (): string { return join(this.#stage.proxy.folder, 'control.sock') }
}

const Shape = Type.Object({ credentials: Type.Record(Type.String(), Credential), env: Type.Record(Type.String(), Type.String({ pattern: '^[^\\u0000]*$' })) })
const secrets = createSecrets(randomBytes(32))

function requestOf (random: Random): Json {
  const header = (): string => random.pick(['Authorization', 'x-a', 'X_A', 'x-b', 'host', 'cookie'])
  const entry = (): Json => ({ ...random.once(3) ? {} : { hosts: random.many(3, () => random.pick(['a.b', '*.a.b', 'A.B', 'api.example.com', 'x'])) }, as: { header: header(), format: random.pick(['${value}', 'Bearer ${value}', '${value}${value}']) } })
  const credential = (): Json => ({ source: { env: random.pick(['A', 'B']) }, inject: [entry(), ...random.many(2, entry)] })
  return { credentials: { ONE: credential(), ...random.once(2) ? { TWO: credential() } : {} }, env: { A: SECRET, B: `${SECRET}-2` } }
}

/** What the server takes from a client is never what the proxy refuses: that would keep everybody's policies from it. */
function policyOfRequest (random: Random, hold: Hold): FuzzResult {
  const value: unknown = disturb(random, requestOf(random), 2)
  const input = JSON.stringify(value).slice(0, SHOWN)
  if (!Value.Check(Shape, value)) return { input }
  hold.begin()
  try {
    const spec = prepareSpec({ mode: 'all', ...value }, secrets)
    const unavailable: unknown[] = []
    const vm = composeVm({ instanceId: 'a', address: '10.1.0.2', epoch: '1', spec }, secrets, error => unavailable.push(error))
    const [first] = unavailable
    if (first !== undefined) return { input, fault: `a value cannot be opened: ${String(first)}` }
    parseRevision(JSON.parse(JSON.stringify({ revision: 1, vms: [vm] })))
  } catch (error) {
    // What stands where names belong is quoted.
    const isSaid = error instanceof BerthError && error.statusCode === 400 && /^(?:credentials|env)\b[^:]*: ./.test(error.message) && (!error.message.includes(SECRET) || JSON.stringify(value.credentials).includes(SECRET))
    if (!isSaid) return { input, fault: String(error) }
  }
  const fault = hold.fault()
  return { input, ...fault === undefined ? {} : { fault } }
}

export const fuzz: Fuzz = {
  seeds: [77_675_605],
  async start (atEnd) {
    const stage = await setStage({ teardown: atEnd })
    const origin = await stage.origin(100)
    const pids = [stage.proxy.process.pid ?? 0, ...(await workersOf(stage.proxy)).map(({ pid }) => pid)]
    const control = new ControlSocket(stage, origin, pids.map(pid => new Hold(pid)))
    await control.begin()
    const own = new Hold()
    return async random => random.once(3) ? policyOfRequest(random, own) : await control.case(random)
  }
}
