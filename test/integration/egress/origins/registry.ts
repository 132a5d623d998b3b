// Registries of images over TLS, in front of Debian's docker-registry: one that wants Basic and sends for blobs to another host, one that wants a token of a login.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { request as plainRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { stringify } from 'yaml'
import { ORIGINS } from './contract.ts'
import { valuesOf, type Answering, type Call } from './host.ts'
import { wheelAt } from './packages.ts'
import { eventually } from '../../../helpers/eventually.ts'

const PORT = 5000
const BLOB = /^\/v2\/.+\/blobs\/sha256:[0-9a-f]{64}$/
/** what HTTP/2 does not know */
const HOP_BY_HOP = ['connection', 'keep-alive', 'transfer-encoding', 'date']

export interface Registries {
  readonly registry: Answering
  readonly content: Answering
  readonly tokens: Answering
  readonly login: Answering
}

/** Starts the store on this namespace's loopback. @param basic what `Authorization` must say after `Basic` */
export async function startRegistries (folder: string, basic: () => string): Promise<Registries> {
  await mkdir(join(folder, 'store'), { recursive: true })
  await writeFile(join(folder, 'config.yml'), stringify({
    version: '0.1',
    log: { level: 'error', accesslog: { disabled: true } },
    storage: { filesystem: { rootdirectory: join(folder, 'store') } },
    http: { addr: `127.0.0.1:${PORT}`, relativeurls: true }
  }))
  const child = spawn('setpriv', ['--pdeathsig', 'KILL', 'docker-registry', 'serve', 'config.yml'], { cwd: folder, stdio: 'ignore' })
  // It announces nothing: asking is the only way to know.
  await eventually('the registry answers', async () => {
    if (child.exitCode !== null) throw new Error('the registry did not start')
    return await answers()
  })
  const token = randomBytes(16).toString('hex')
  const authorized = ({ request }: Call, wanted: string): boolean => valuesOf(request.rawHeaders, 'authorization').join() === wanted
  return {
    async registry (call) {
      if (!authorized(call, `Basic ${basic()}`)) return call.answer(401, '{}', { 'www-authenticate': 'Basic realm="registry"' })
      if (call.request.method === 'GET' && BLOB.test(call.path)) return call.answer(307, '', { location: `https://${ORIGINS.content}${call.path}?signature=of-the-registry` })
      await forward(call)
    },
    async content (call) {
      const wheel = wheelAt(call.path)
      if (wheel !== undefined) call.answer(200, wheel)
      else if (call.query.get('signature') !== 'of-the-registry') call.answer(403, 'no')
      else await forward(call)
    },
    async tokens (call) {
      if (authorized(call, `Bearer ${token}`)) return await forward(call)
      call.answer(401, '{}', { 'www-authenticate': `Bearer realm="https://${ORIGINS.login}/token",service="tokens",scope="repository:pushed:pull,push"` })
    },
    login (call) {
      if (authorized(call, `Basic ${basic()}`)) call.answer(200, JSON.stringify({ token, expires_in: 300 }), { 'content-type': 'application/json' })
      else call.answer(401, '{}')
    }
  }
}

async function answers (): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${PORT}/v2/`).then(() => true, () => false)
}

async function forward ({ request, response }: Call): Promise<void> {
  const headers = Object.fromEntries(Object.entries(request.headers).filter(([name]) => !name.startsWith(':') && !['authorization', 'host', ...HOP_BY_HOP].includes(name)))
  const outgoing = plainRequest({ host: '127.0.0.1', port: PORT, method: request.method ?? 'GET', path: request.url ?? '/', headers })
  const answered = once(outgoing, 'response') as Promise<[IncomingMessage]>
  request.on('data', (chunk: Buffer) => outgoing.write(chunk))
  request.on('end', () => outgoing.end())
  request.resume()
  const [incoming] = await answered
  response.statusCode = incoming.statusCode ?? 502
  for (const [name, value] of Object.entries(incoming.headers)) if (value !== undefined && !HOP_BY_HOP.includes(name)) response.setHeader(name, value)
  await pipeline(incoming, response)
}
