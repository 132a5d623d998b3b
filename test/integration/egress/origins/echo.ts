// The origin that tells what it got, and has bodies of any size. It never tells a value of a header: the guest would have it then.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { gzipSync } from 'node:zlib'
import { valuesOf, type Answering, type Call } from './host.ts'

/** What `/echo` answers with, as JSON. */
export interface Echo {
  readonly method: string
  readonly url: string
  readonly protocol: string
  readonly bodyBytes: number
  readonly bodyHash: string
  /** names of the headers, as they came */
  readonly names: readonly string[]
  /** how many `Authorization` there were */
  readonly authorizations: number
}

const BLOCK = createBlock()

/** Bytes that do not compress, the same in every process. */
function createBlock (): Buffer {
  const parts: Buffer[] = []
  for (let index = 0; index < 32_768; index++) parts.push(createHash('sha256').update(`block ${index}`).digest())
  return Buffer.concat(parts)
}

/** The bytes of `/bytes/<count>`, piece by piece. */
export function * bytesOf (count: number): Generator<Buffer> {
  for (let left = count; left > 0; left -= BLOCK.length) yield BLOCK.subarray(0, Math.min(left, BLOCK.length))
}

/** Hex hash of what `/bytes/<count>` answers with. */
export function hashOfBytes (count: number, algorithm: 'sha256' | 'md5' = 'sha256'): string {
  const hash = createHash(algorithm)
  for (const piece of bytesOf(count)) hash.update(piece)
  return hash.digest('hex')
}

/** What `/compressed` answers with, under `Content-Encoding: gzip`. */
export const COMPRESSED = gzipSync(Buffer.from('the same words again and again; '.repeat(1000)))

export const echo: Answering = async (call) => {
  const [, kind, argument = ''] = call.path.split('/')
  const answer = kind === undefined ? undefined : ANSWERS[kind]
  if (answer === undefined) call.answer(404, 'no such thing')
  else await answer(call, argument)
}

/** What holds the answers to `/held` until it is told to let them go; from then on it answers at once. */
export class Gate {
  #isOpen = false
  readonly #held: Call[] = []

  answer (call: Call): void {
    if (this.#isOpen) call.answer(200, 'at once')
    else this.#held.push(call)
  }

  open (): void {
    this.#isOpen = true
    for (const call of this.#held.splice(0)) call.answer(200, 'at last')
  }
}

const ANSWERS: Readonly<Record<string, (call: Call, argument: string) => Promise<void> | void>> = {
  async echo (call) {
    const { request } = call
    const { bytes, hash } = await call.drain()
    const told: Echo = {
      method: request.method ?? '', url: request.url ?? '', protocol: request.httpVersion, bodyBytes: bytes, bodyHash: hash,
      names: request.rawHeaders.filter((_, index) => index % 2 === 0), authorizations: valuesOf(request.rawHeaders, 'authorization').length
    }
    call.answer(200, JSON.stringify(told), { 'content-type': 'application/json', 'set-cookie': ['a=1; Path=/', 'b=2; Path=/'], 'x-origin': 'echo' })
  },
  async bytes ({ request, response }, argument) {
    request.resume()
    response.setHeader('content-length', argument)
    response.setHeader('etag', '"bytes"')
    for (const piece of bytesOf(Number(argument))) if (!response.write(piece)) await once(response, 'drain')
    response.end()
  },
  compressed (call) { call.answer(200, COMPRESSED, { 'content-encoding': 'gzip', 'content-type': 'text/plain' }) },
  status ({ request, response }, argument) {
    request.resume()
    response.statusCode = Number(argument)
    response.setHeader('x-status', argument)
    response.end(['204', '304'].includes(argument) ? undefined : `status ${argument}`)
  },
  /** sends back in a header what it got: the proxy is to put the mock in its place */
  reflect (call) { call.answer(200, 'look at the header', { 'x-reflected': valuesOf(call.request.rawHeaders, 'authorization').join() }) }
}
