// Speaks the registry's protocol on a channel to the built-in registry: without a socket, without a key.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { request, type IncomingMessage, type OutgoingHttpHeaders } from 'node:http'
import { duplexPair, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { digestOf } from '../../../core/library/oci/digest.ts'
import type { RegistryChannel } from '../../registry/contract.ts'

export interface Blob {
  readonly mediaType: string
  readonly digest: string
  readonly size: number
  readonly content: () => Readable
}

export interface RegistryClient {
  /** Whether it has any tags, without reading all of them. */
  hasTags (repository: string): Promise<boolean>
  putBlob (repository: string, blob: Blob): Promise<void>
  /** @returns its digest */
  putManifest (repository: string, tag: string, mediaType: string, manifest: string): Promise<string>
}

interface Answer { readonly status: number, readonly location: string | undefined, readonly text: string }

const MAX_ANSWER_BYTES = 2 ** 20
/** of a list of tags, until its first: a cache has a tag for each of its layers, and docker-registry gives them all at once */
const FIRST_TAG_BYTES = 4096

export function createRegistryClient (channel: RegistryChannel, signal: AbortSignal): RegistryClient {
  const ask = async (method: string, path: string, headers: OutgoingHttpHeaders = {}, body?: Readable): Promise<Answer> => await send(channel, { method, path, headers, body, signal, limit: { bytes: MAX_ANSWER_BYTES } })
  return {
    async hasTags (repository) {
      const answer = await send(channel, { method: 'GET', path: `/v2/${repository}/tags/list`, headers: {}, body: undefined, signal, limit: { bytes: FIRST_TAG_BYTES, isEnough: true } })
      return answer.status !== 404 && /"tags":\s*\[\s*"/.test(expect(answer, 200, 'a question for tags').text)
    },
    async putBlob (repository, blob) {
      const begun = await ask('POST', `/v2/${repository}/blobs/uploads/`)
      const place = expect(begun, 202, 'an upload').location
      if (place === undefined) throw new Error('the registry named no place for an upload')
      const url = new URL(place, 'http://localhost')
      url.searchParams.set('digest', blob.digest)
      const headers = { 'content-type': 'application/octet-stream', 'content-length': blob.size }
      expect(await ask('PUT', `${url.pathname}${url.search}`, headers, blob.content()), 201, 'a blob')
    },
    async putManifest (repository, tag, mediaType, manifest) {
      const bytes = Buffer.from(manifest)
      expect(await ask('PUT', `/v2/${repository}/manifests/${tag}`, { 'content-type': mediaType, 'content-length': bytes.length }, Readable.from([bytes])), 201, 'a manifest')
      return digestOf(bytes)
    }
  }
}

/** A blob that is in memory. */
export function blobOf (mediaType: string, content: string): Blob {
  const bytes = Buffer.from(content)
  return { mediaType, digest: digestOf(bytes), size: bytes.length, content: () => Readable.from([bytes]) }
}

/** A blob that is a file. */
export async function fileBlob (mediaType: string, path: string): Promise<Blob> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return { mediaType, digest: `sha256:${hash.digest('hex')}`, size: (await stat(path)).size, content: () => createReadStream(path) }
}

function expect (answer: Answer, status: number, what: string): Answer {
  if (answer.status !== status) throw new Error(`the built-in registry did not take ${what}: ${answer.status} ${answer.text.slice(0, 500)}`)
  return answer
}

interface Question { readonly method: string, readonly path: string, readonly headers: OutgoingHttpHeaders, readonly body: Readable | undefined, readonly signal: AbortSignal, readonly limit: Limit }

/** How much of an answer is read: an error beyond it, unless its beginning is enough. */
interface Limit { readonly bytes: number, readonly isEnough?: boolean }

async function send (channel: RegistryChannel, { method, path, headers, body, signal, limit }: Question): Promise<Answer> {
  // one connection per request, which the answer ends
  const [near, far] = duplexPair()
  channel.serve(far)
  try {
    const asking = request({ createConnection: () => near, host: 'localhost', method, path, headers: { ...headers, connection: 'close' }, signal })
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      asking.once('response', resolve)
      asking.once('error', reject)
    })
    const sent = body === undefined ? Promise.resolve(asking.end()) : pipeline(body, asking)
    // An early answer, before everything is sent, gives the reason.
    const answer = await Promise.race([answered, sent.then(async () => await answered)])
    const text = await read(answer, limit)
    return { status: answer.statusCode ?? 0, location: answer.headers.location, text }
  } finally {
    near.destroy()
  }
}

async function read (answer: IncomingMessage, limit: Limit): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer) {
    bytes += chunk.length
    chunks.push(chunk)
    if (bytes <= limit.bytes) continue
    if (limit.isEnough === true) break
    throw new Error(`the built-in registry gave an answer of more than ${limit.bytes} bytes`)
  }
  return Buffer.concat(chunks).toString('utf8')
}
