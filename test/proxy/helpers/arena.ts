// A proxy between one guest and one origin that both misbehave, and a neighbour who must notice nothing: no exit, no fault, no stall.
import type { Test } from 'tap'
import { connect as connectHttp2, constants, type ClientHttp2Session, type OutgoingHttpHeaders } from 'node:http2'
import { once } from 'node:events'
import { request } from 'node:http'
import type { Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'
import { openPlain, openTls } from './guest.ts'
import { ACK, END_HEADERS, frame, FrameReader, HEADERS, PING, PREFACE, SETTINGS, type Frame } from './frames.ts'
import { loopback } from './network.ts'
import { vmPolicy } from './proxy.ts'
import { startRawOrigin, type RawOrigin } from './raw-origin.ts'
import { setStage, type Stage } from './setup.ts'

/** What a guest got: a status, 'reset' for a stream or connection that ended without one, or 'silence' when it gave up. */
export type Outcome = { readonly status: number, readonly headers: Record<string, unknown>, readonly body: string, readonly trailers: Record<string, unknown>, readonly whole: boolean } | 'reset' | 'silence'

/** What an origin does with a request. */
export type Play = (write: (bytes: Buffer | string) => void, stream: number, socket: Socket) => void

export interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

export interface Arena {
  readonly stage: Stage
  /** name of the origin that speaks HTTP/1.1 over TLS, of the one without TLS, and of the one that speaks HTTP/2 */
  readonly names: { readonly http1: string, readonly plain: string, readonly http2: string }
  /** what the origins do with the next request */
  play: Play
  /** how long a guest waits for an answer that may never come */
  patienceMs: number
  /** frames that came to the HTTP/2 origin */
  readonly frames: Frame[]
  /** header and body that came to the HTTP/1.1 origins last, as one text */
  received: string
  origins (): readonly RawOrigin[]
  /** One request over HTTP/1.1, on a connection of its own. */
  viaHttp1 (name: string, asked?: Asked): Promise<Outcome>
  /** One request over HTTP/2. */
  viaHttp2 (name: string, asked?: Asked): Promise<Outcome>
  /** A connection of the guest that speaks HTTP/2 as the test likes, behind its preface. */
  rawHttp2 (name: string): Promise<TLSSocket>
  /** Whether the neighbour is served at this moment. */
  neighbour (): Promise<boolean>
  /** What the proxy said when it, or one of its workers, ended or hung; `undefined` when none did. */
  ended (): string | undefined
  /** Asserts that the proxy runs, without a fault of its own, and serves the neighbour. */
  held (t: Test): Promise<void>
}

interface Teardown { teardown (work: () => unknown): void }

const PATIENCE_MS = 5_000

/** Sets it up; it ends with the test. */
export async function setArena (t: Teardown, limits: Readonly<Record<string, number>> = {}): Promise<Arena> {
  const stage = await setStage(t, { limits: { headerMs: 3_000, ...limits } })
  const other = loopback(11)
  const [http1, plain, http2, quiet] = ['h1.bad.test', 'plain.bad.test', 'h2.bad.test', 'api.good.test'] as const
  await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: ['*.bad.test'] }]), vmPolicy(other))
  await stage.origin(100, { hosts: [quiet] })
  const origins: RawOrigin[] = []
  const frames: Frame[] = []
  let session: ClientHttp2Session | undefined
  let sessionName = ''
  const arena: Arena = {
    stage,
    names: { http1, plain, http2 },
    play () {},
    patienceMs: PATIENCE_MS,
    frames,
    received: '',
    origins: () => origins,
    viaHttp1: async (name, asked = {}) => await askHttp1(stage, name, arena.patienceMs, name === plain, asked),
    async viaHttp2 (name, asked = {}) {
      if (session === undefined || session.closed || session.destroyed || sessionName !== name) {
        session?.destroy()
        const socket = await openTls(stage.proxy, stage.guest, name, { alpn: ['h2'] })
        session = connectHttp2(`https://${name}`, { createConnection: () => socket, settings: { enablePush: false } })
        session.on('error', () => {})
        sessionName = name
      }
      return await askHttp2(session, stage.host(name), arena.patienceMs, asked)
    },
    async rawHttp2 (name) {
      const socket = await openTls(stage.proxy, stage.guest, name, { alpn: ['h2'] })
      socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0)]))
      return socket
    },
    async neighbour () {
      const socket = await openTls(stage.proxy, other, quiet)
      const outgoing = request({ createConnection: () => socket, headers: { host: stage.host(quiet) } }).end()
      const [response] = await once(outgoing, 'response')
      socket.destroy()
      return response.statusCode === 200
    },
    ended () {
      const said = stage.proxy.output()
      return stage.proxy.process.exitCode !== null || /"msg":"a worker (?:is stopped by a failure|has ended|hangs)/.test(said) ? said.slice(-3000) : undefined
    },
    async held (t) {
      t.equal(arena.ended(), undefined, 'the proxy and its workers run')
      t.ok(await arena.neighbour(), 'the neighbour is served')
      const { body } = await stage.proxy.call('GET', '/metrics')
      t.match(body, /^berth_egress_exchange_faults_total 0$/m, `no exception inside of the proxy: ${stage.proxy.output().slice(-3000)}`)
    }
  }
  t.teardown(() => {
    session?.destroy()
    for (const origin of origins) origin.close()
  })
  for (const [name, last, isPlain] of [[http1, 101, false], [plain, 102, true]] as const) {
    stage.names.records.set(name, [loopback(last)])
    origins.push(await startRawOrigin({
      address: loopback(last), port: isPlain ? stage.plainPort : stage.port, host: name, ...isPlain ? {} : { authority: stage.authority },
      heard (socket, piece) {
        const text = piece.toString('latin1')
        // The proxy writes each header at once; what does not look like one is a body.
        const begins = /^[A-Z]+ \S+ HTTP\/1\.1\r\n/.test(text)
        arena.received = begins ? text : arena.received + text
        if (begins) arena.play(bytes => { if (socket.writable) socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes) }, 0, socket)
      }
    }))
  }
  stage.names.records.set(http2, [loopback(103)])
  const readers = new Map<number, FrameReader>()
  origins.push(await startRawOrigin({
    address: loopback(103), port: stage.port, host: http2, authority: stage.authority, alpn: ['h2'],
    heard (socket, piece, connection) {
      let reader = readers.get(connection)
      let rest = piece
      if (reader === undefined) {
        reader = new FrameReader()
        readers.set(connection, reader)
        socket.write(frame(SETTINGS, 0, 0))
        rest = piece.subarray(PREFACE.length)
      }
      for (const found of reader.push(rest)) {
        frames.push(found)
        if (found.type === SETTINGS && (found.flags & ACK) === 0) socket.write(frame(SETTINGS, ACK, 0))
        if (found.type === PING && (found.flags & ACK) === 0) socket.write(frame(PING, ACK, 0, found.body))
        if (found.type === HEADERS && (found.flags & END_HEADERS) !== 0) arena.play(bytes => { if (socket.writable) socket.write(bytes) }, found.stream, socket)
      }
    }
  }))
  return arena
}

async function askHttp1 (stage: Stage, name: string, patienceMs: number, plain: boolean, { method = 'GET', headers = {}, body }: Asked): Promise<Outcome> {
  const socket = plain ? await openPlain(stage.proxy, stage.guest) : await openTls(stage.proxy, stage.guest, name)
  const outgoing = request({ createConnection: () => socket, method, headers: { host: `${name}:${plain ? stage.plainPort : stage.port}`, ...headers }, setHost: false, maxHeaderSize: 1024 * 1024 })
  return await new Promise(resolve => {
    const timer = setTimeout(() => finish('silence'), patienceMs)
    const finish = (outcome: Outcome): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(outcome)
    }
    outgoing.on('error', () => finish('reset'))
    outgoing.on('upgrade', response => finish({ status: response.statusCode ?? 0, headers: response.headers, body: '', trailers: {}, whole: true }))
    outgoing.on('response', response => {
      let text = ''
      response.on('data', (chunk: Buffer) => { text += chunk.toString('latin1') })
      response.on('error', () => {})
      response.on('close', () => finish({ status: response.statusCode ?? 0, headers: response.headers, body: text, trailers: response.trailers, whole: response.complete }))
    })
    outgoing.end(body)
  })
}

async function askHttp2 (session: ClientHttp2Session, authority: string, patienceMs: number, { method = 'GET', headers = {}, body }: Asked): Promise<Outcome> {
  let stream
  try {
    stream = session.request({ ':authority': authority, ':path': '/', ':method': method, ...headers }, { endStream: body === undefined })
  } catch {
    return 'reset'
  }
  const outgoing = stream
  let found: OutgoingHttpHeaders | undefined
  let trailers: Record<string, unknown> = {}
  let text = ''
  let timer: NodeJS.Timeout | undefined
  outgoing.on('response', headers => { found = headers })
  outgoing.on('trailers', headers => { trailers = headers })
  outgoing.on('data', (chunk: Buffer) => { text += chunk.toString('latin1') })
  outgoing.on('error', () => {})
  if (body !== undefined) outgoing.end(body)
  const closed = new Promise<'closed'>(resolve => outgoing.on('close', () => resolve('closed')))
  const late = new Promise<'silence'>(resolve => { timer = setTimeout(() => resolve('silence'), patienceMs) })
  const how = await Promise.race([closed, late])
  clearTimeout(timer)
  if (how === 'silence') outgoing.close(constants.NGHTTP2_CANCEL)
  if (found === undefined) return how === 'silence' ? how : 'reset'
  return { status: Number(found[':status']), headers: found, body: text, trailers, whole: how === 'closed' && outgoing.rstCode === constants.NGHTTP2_NO_ERROR }
}
