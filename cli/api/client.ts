// Calls of the REST API over node:http and node:https, which accept a certificate authority of the caller's and stream in both directions.
import { request as httpRequest, type IncomingMessage, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { connectToOwner, type KeyFile } from '../connection/local-peer.ts'
import type { Target } from '../connection/target.ts'
import { Failure } from '../failure.ts'
import { late, lost, refusalOf, unreachable } from './failures.ts'
import { addressOf, queryText, type Query } from './path.ts'

export interface CallOptions {
  readonly query?: Query
  /** sent as JSON */
  readonly body?: unknown
  /** sent as it is, with these headers */
  readonly upload?: { readonly content: Readable, readonly headers: Readonly<Record<string, string>> }
  /** aborts the call, in addition to Ctrl-C */
  readonly signal?: AbortSignal
  /** for a call that undoes something, or whose answer says what is to be undone: it goes on after Ctrl-C */
  readonly isUndo?: boolean
  /** for a route that needs no key */
  readonly withoutKey?: boolean
}

/** What a connection is opened with, whatever is spoken on it: the key, and how it is made sure that the key goes to its server. */
export type Opening = { readonly headers: Readonly<Record<string, string>> } & Pick<RequestOptions, 'createConnection'> & { readonly ca?: string }

export interface Api {
  readonly target: Target
  /** The parsed answer; undefined when there is none. */
  call<T = unknown> (method: string, path: string, options?: CallOptions): Promise<T>
  /** An answer that is read while it arrives. */
  stream (method: string, path: string, options?: CallOptions): Promise<IncomingMessage>
  /** All items of a list, page by page. */
  list<T> (path: string, query?: Query): Promise<T[]>
  /** For a connection with another protocol. */
  opening (signal: AbortSignal): Opening
}

/** The largest answer that is read as a whole; lists come in pages. */
const MAX_ANSWER_BYTES = 64 * 1024 * 1024
/** far more than a host has of anything */
const MAX_ITEMS = 1_000_000
const PAGE = 500

/** @param timeoutMs limit until an answer begins; 0 is no limit */
export function createApi (target: Target, userAgent: string, timeoutMs: number, interrupted: AbortSignal): Api {
  const opening = (signal: AbortSignal, withoutKey = false): Opening => {
    const { token, keyFile, ca } = target
    const common = { headers: { 'user-agent': userAgent }, ...ca === undefined ? {} : { ca } }
    if (token === undefined || withoutKey) return common
    return { ...common, headers: { ...common.headers, authorization: `Bearer ${token}` }, ...keyFile === undefined ? {} : { createConnection: connector(target.url, keyFile, signal) } }
  }
  const open = async (method: string, path: string, { query = {}, body, upload, signal: own, isUndo = false, withoutKey = false }: CallOptions = {}): Promise<IncomingMessage> => {
    const url = addressOf(target.url, `${path}${queryText(query)}`)
    const json = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const signal = AbortSignal.any([...own === undefined ? [] : [own], ...isUndo ? [] : [interrupted]])
    const { headers, ...connection } = opening(signal, withoutKey)
    const request = send(url, {
      method,
      signal,
      ...connection,
      headers: { accept: 'application/json', ...headers, ...json === undefined ? {} : { 'content-type': 'application/json', 'content-length': json.length }, ...upload?.headers }
    })
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      request.once('response', resolve)
      // More than one may come: of a request that was given up, and then of its connection.
      request.on('error', (error) => reject(unreachable(target, error)))
      // It ends the request, too, which would then be taken for the connection's fault.
      upload?.content.on('error', (error: Error) => reject(error instanceof Failure ? error : new Failure(`what is sent cannot be read: ${error.message}`, { cause: error })))
    })
    if (timeoutMs > 0) request.setTimeout(timeoutMs, () => request.destroy(late(target, timeoutMs)))
    // The server may answer before the upload has ended, and that answer counts.
    if (upload === undefined) request.end(json)
    else pipeline(upload.content, request).catch((error: unknown) => { if (!upload.content.readableEnded) request.destroy(error instanceof Error ? error : new Error(String(error))) })
    const answer = await answered
    request.setTimeout(0)
    if ((answer.statusCode ?? 500) >= 400) throw refusalOf(answer.statusCode ?? 500, (await whole(answer, target)).toString())
    return answer
  }
  const call = async <T>(method: string, path: string, options?: CallOptions): Promise<T> => parsed<T>(await whole(await open(method, path, options), target), target)
  const list = async <T>(path: string, query: Query = {}): Promise<T[]> => {
    const items: T[] = []
    for (let after: string | undefined; ;) {
      const answer = await open('GET', path, { query: { limit: PAGE, ...query, ...after === undefined ? {} : { after } } })
      const page = parsed<T[]>(await whole(answer, target), target)
      if (!Array.isArray(page)) throw new Failure(`${target.url.origin}: the answer is no list`)
      for (const item of page) items.push(item)
      if (items.length > MAX_ITEMS) throw new Failure(`${target.url.origin}: a list of more than ${MAX_ITEMS} items`)
      after = nextOf(answer.headers.link)
      if (after === undefined || page.length === 0) return items
    }
  }
  return { target, opening, call, stream: open, list }
}

function connector (url: URL, keyFile: KeyFile, signal: AbortSignal): NonNullable<Opening['createConnection']> {
  return (_options, connected) => {
    connectToOwner(url, keyFile, signal).then((socket) => connected(null, socket), (error: Error) => connected(error, new Socket()))
    return undefined
  }
}

async function whole (answer: IncomingMessage, target: Target): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of answer as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > MAX_ANSWER_BYTES) throw new Failure(`${target.url.origin}: an answer of more than ${MAX_ANSWER_BYTES} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof Failure ? error : lost(target, 'in the middle of an answer')
  }
  return Buffer.concat(chunks)
}

function parsed<T> (bytes: Buffer, target: Target): T {
  if (bytes.length === 0) return undefined as T
  try {
    return JSON.parse(bytes.toString()) as T
  } catch {
    throw new Failure(`${target.url.origin}: the answer is no JSON`, { hint: 'is that address the one of a Berth server?' })
  }
}

/** The `after` of `Link: <…>; rel="next"`. */
function nextOf (link: string | string[] | undefined): string | undefined {
  const text = Array.isArray(link) ? link.join(',') : link ?? ''
  const from = text.indexOf('<')
  const to = text.indexOf('>', from)
  if (from < 0 || to < 0 || !text.includes('rel="next"')) return undefined
  const [next, base] = [text.slice(from + 1, to), 'http://server']
  return URL.canParse(next, base) ? new URL(next, base).searchParams.get('after') ?? undefined : undefined
}
