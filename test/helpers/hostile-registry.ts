// Registries that send this server elsewhere, and the service that must not be asked.
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { networkInterfaces } from 'node:os'
import type { Test } from 'tap'
import { blobPath, type OciLayout } from './oci.ts'

/** What the service would give away. */
export const SECRET = 'what-only-insiders-know'
/** Ways in which this machine's loopback, private networks and metadata services can be written. */
export const INNER_HOSTS = ['127.0.0.1', 'localhost', '127.1', '2130706433', '0x7f000001', '0.0.0.0', '[::ffff:127.0.0.1]', '127.9.9.9', 'inner.localhost', '169.254.169.254', '10.1.2.3', 'metadata.google.internal']

export interface Seen {
  readonly host: string
  readonly port: number
  /** method, path and authorization of each request */
  readonly requests: string[]
}

/** Listens on a port of its own until the test is over. */
export async function listen (t: Test, host: string, answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Seen> {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method ?? ''} ${request.url ?? ''} ${request.headers.authorization ?? ''}`)
    request.resume()
    answer(request, response)
  })
  await once(server.listen(0, host), 'listening')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  const address = server.address()
  return { host, port: typeof address === 'object' && address !== null ? address.port : 0, requests }
}

/** A service of the inner network that would hand out a token. */
export async function insider (t: Test, host = '127.0.0.1'): Promise<Seen> {
  return await listen(t, host, (_request, response) => { response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ token: SECRET, access_token: SECRET })) })
}

/** A registry that sends everybody to a place of its choice for a token. */
export async function withRealm (t: Test, realm: string): Promise<Seen> {
  return await listen(t, '127.0.0.1', (_request, response) => { response.writeHead(401, { 'www-authenticate': `Bearer realm="${realm}",service="x",scope="repository:a:pull"`, 'docker-distribution-api-version': 'registry/2.0' }).end() })
}

/**
 * A registry that has the images of some layouts, by digest, in every repository.
 * @param others manifests that it gives in place of those asked for, by tag or digest; read for each request
 */
export async function lying (t: Test, layouts: readonly OciLayout[], others: ReadonlyMap<string, string>): Promise<Seen> {
  return await listen(t, '127.0.0.1', (request, response) => {
    const [, kind, end = ''] = /^\/v2\/.+\/(manifests|blobs)\/([^/?]+)$/.exec(request.url ?? '') ?? []
    if (kind === undefined) return response.writeHead(request.url === '/v2/' ? 200 : 404).end()
    const other = kind === 'manifests' ? others.get(end) : undefined
    const bytes = other === undefined ? Promise.any(layouts.map(async ({ folder }) => await readFile(blobPath(folder, end)))) : Promise.resolve(Buffer.from(other))
    bytes.then((found) => {
      response.writeHead(200, { 'content-length': found.length, ...kind === 'manifests' ? { 'content-type': mediaTypeOf(found) } : {} }).end(request.method === 'HEAD' ? undefined : found)
    }, () => { response.writeHead(404).end() })
  })
}

function mediaTypeOf (manifest: Buffer): string {
  const parsed: unknown = JSON.parse(manifest.toString())
  return typeof parsed === 'object' && parsed !== null && 'mediaType' in parsed ? String(parsed.mediaType) : 'application/vnd.oci.image.manifest.v1+json'
}

/** An address of this machine that is not loopback. */
export function ownAddress (): string | undefined {
  return Object.values(networkInterfaces()).flatMap((each) => each ?? []).find(({ family, internal }) => family === 'IPv4' && !internal)?.address
}
