// Connects to an origin: resolves its name, vets every address, dials a vetted one, and checks the certificate before anything is written.
import { connect as connectTcp, type OnReadOpts, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { Refusal, type ReasonCode } from '../contract/reasons.ts'
import { errorCode } from '../log/error-code.ts'
import type { CanonicalHost } from '../contract/canonical-host.ts'
import { isMetadataName } from '../contract/vet.ts'
import type { OriginServices } from './services.ts'

export interface Target {
  readonly host: CanonicalHost
  readonly port: number
  readonly secure: boolean
}

export interface DialOptions {
  readonly addresses: readonly string[]
  readonly alpn: readonly string[]
  readonly session: Buffer | undefined
  readonly onSession: (session: Buffer) => void
  /** Is told of each connection as soon as it is dialled. */
  readonly onSocket: (socket: Socket) => void
  /** ends the dial */
  readonly signal: AbortSignal
  /** Takes arriving bytes as a view of memory that is overwritten after the call; without it the socket is read as a stream. */
  readonly onRead?: (view: Buffer) => void
}

// When there is another address to try, a long wait for the first helps nobody.
const FIRST_ADDRESS_MS = 3_000
/** A name may have thousands of addresses, of which none answers. */
const MOST_ADDRESSES = 8
const KEEP_ALIVE_MS = 60_000
/** Arriving bytes of all connections are read into this buffer, one piece at a time: a new buffer for each TLS record would cost more than parsing the record. */
const ARRIVALS = Buffer.allocUnsafeSlow(64 * 1024)

/** The addresses of a host, when all of them may be dialled; otherwise an error. */
export async function vettedAddresses (host: CanonicalHost, services: OriginServices): Promise<{ addresses: readonly string[], ttlMs: number }> {
  if (isMetadataName(host.name)) throw new Refusal('metadata_refused')
  const answer = host.family === 0 ? await services.resolve(host.name) : { addresses: [host.name], ttlMs: 60_000 }
  for (const address of answer.addresses) refuseUnless(services.vet(address))
  return answer
}

/** Connects to the first address that answers; a bad certificate counts as an answer. */
export async function dial (target: Target, options: DialOptions, services: OriginServices): Promise<Socket | TLSSocket> {
  let failure = new Refusal('connect_failed')
  const addresses = options.addresses.slice(0, MOST_ADDRESSES)
  for (const [index, address] of addresses.entries()) {
    if (options.signal.aborted) throw new Refusal('policy_changed')
    try {
      const last = index === addresses.length - 1
      const timeoutMs = last ? services.limits.connectMs : Math.min(FIRST_ADDRESS_MS, services.limits.connectMs)
      return await dialAddress(address, timeoutMs, target, options, services)
    } catch (error) {
      failure = error instanceof Refusal ? error : new Refusal('connect_failed', { cause: error })
      if (failure.code !== 'connect_failed' && failure.code !== 'connect_timeout') throw failure
    }
  }
  throw failure
}

function dialAddress (address: string, timeoutMs: number, target: Target, options: DialOptions, services: OriginServices): Promise<Socket | TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = target.secure ? secure(address, target, options, services) : connectTcp({ host: address, port: target.port, ...arrivals(options) })
    options.onSocket(socket)
    let connected = false
    const timer = setTimeout(() => fail(new Refusal('connect_timeout')), timeoutMs)
    // This listener stays for the socket's whole life: an error that nobody listens for would end the program.
    const fail = (error: unknown) => {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', giveUp)
      reject(error instanceof Refusal ? error : new Refusal(codeOf(error, connected), { cause: error }))
      socket.destroy()
    }
    const giveUp = (): void => fail(new Refusal('policy_changed'))
    options.signal.addEventListener('abort', giveUp)
    /** The kernel says which address was reached: whatever happened on the way, nothing is sent to an address that may not be dialled. */
    const vetReached = (): boolean => {
      const refusal = services.vet(socket.remoteAddress ?? '')
      if (refusal !== undefined) fail(new Refusal(refusal))
      return refusal === undefined
    }
    socket.once('connect', () => {
      connected = true
      vetReached()
    })
    socket.on('error', fail)
    socket.once('close', () => fail(new Refusal(connected ? 'upstream_tls' : 'connect_failed')))
    socket.once(target.secure ? 'secureConnect' : 'connect', () => {
      // The rules may have changed during the handshake.
      if (socket.destroyed || !vetReached()) return
      clearTimeout(timer)
      options.signal.removeEventListener('abort', giveUp)
      services.counters.originConnections++
      resolve(socket)
    })
    socket.setNoDelay(true)
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
  })
}

function secure (address: string, target: Target, options: DialOptions, services: OriginServices): TLSSocket {
  const socket = connectTls({
    host: address,
    port: target.port,
    // The certificate is checked for this name, never for one from a guest's header.
    servername: target.host.name,
    secureContext: services.originTrust,
    ALPNProtocols: [...options.alpn],
    session: options.session,
    rejectUnauthorized: true,
    ...arrivals(options)
  })
  socket.on('session', options.onSession)
  return socket
}

/** Node's option to read without a stream between the socket and its reader. */
function arrivals ({ onRead }: DialOptions): { onread?: OnReadOpts } {
  if (onRead === undefined) return {}
  const callback = (bytes: number): boolean => {
    onRead(ARRIVALS.subarray(0, bytes))
    return true
  }
  return { onread: { buffer: ARRIVALS, callback } }
}

function refuseUnless (code: ReasonCode | undefined): void {
  if (code !== undefined) throw new Refusal(code)
}

function codeOf (error: unknown, connected: boolean): ReasonCode {
  if (!connected) return 'connect_failed'
  const code = errorCode(error) ?? ''
  return /^(?:CERT_|ERR_TLS_CERT|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|HOSTNAME_|INVALID_CA|CRL_|INVALID_PURPOSE)/.test(code) ? 'upstream_certificate' : 'upstream_tls'
}
