// Every route of the server by its own document, with values that fit and such that do not: each answer is one that is documented, and none keeps the server from others.
import { gzipSync } from 'node:zlib'
import { tar } from '../helpers/tar.ts'
import type { Fuzz, Random } from './fuzz.ts'
import { startApiServer, type Operation } from './helpers/api-server.ts'
import { HOSTILE_BODIES } from './helpers/hostile-bodies.ts'
import { valueOf } from './helpers/json-schema.ts'
import { disturb, jsonText, oddValue } from './helpers/policy-values.ts'
import type { RawCall } from './helpers/raw-call.ts'

const SHOWN = 1_000
const REFERENCES = ['known', 'a', 'none', 'localhost%2Fnone', '%2e%2e', '%2F', '..%2f..', '%00', '%ff', 'x'.repeat(200), 'x'.repeat(2_100), '%F0%9F%98%80', '__proto__', '*', '0'] as const
const TYPES = ['application/json', 'application/json; charset=utf-16', 'application/JSON;charset="utf-8"', 'text/plain', 'multipart/form-data', 'multipart/form-data; boundary=b', 'application/gzip', 'application/octet-stream', 'a', '', 'application/x-www-form-urlencoded'] as const

const encoded = (value: unknown): string => encodeURIComponent(Buffer.from(String(typeof value === 'object' ? JSON.stringify(value) : value).slice(0, 400)).toString())

function pathOf (random: Random, { path, parameters = [] }: Operation): string {
  const filled = path.replaceAll(/\{\w+\}/g, () => random.pick(REFERENCES))
  const query = parameters.filter(({ in: where }) => where === 'query').filter(({ required }) => required === true || random.once(3))
    .map(({ name, schema }) => random.once(6) ? `${random.pick([name, `${name}[a]`, `${name}[]`])}=${encoded(oddValue(random))}` : `${name}=${encoded(valueOf(random, schema))}`)
  const more = random.once(6) ? random.many(3, () => random.pick(['tags[a]=b', 'tags[a][b]=c', 'limit=1', 'after=a', '__proto__[a]=b', 'a=%', '&&', '=', 'follow=true', 'tags=a', 'a[0]=1'])) : []
  const all = [...query, ...more]
  return all.length === 0 ? filled : `${filled}?${all.join('&')}`
}

function multipart (random: Random): Buffer {
  const names = ['source', 'dockerfile', 'image_name', 'secrets', 'tags', 'memory_mb', 'cpus', 'timeout_seconds', 'network_mode', 'build_args', '__proto__', '', 'x'.repeat(300)] as const
  const parts = random.many(6, () => `--b\r\nContent-Disposition: form-data; name="${random.pick(names)}"${random.once(3) ? '; filename="f"' : ''}\r\n${random.once(5) ? 'Content-Type: application/json\r\n' : ''}\r\n${random.pick(['a', '{}', '[', '1', 'isolated', 'FROM scratch', '{"a":"b"}', 'x'.repeat(2_000)])}\r\n`)
  return random.mutate(Buffer.from(`${parts.join('')}--b--\r\n`, 'latin1'), random.once(3) ? 2 : 0)
}

function bodyOf (random: Random, { requestBody }: Operation): { readonly headers: Record<string, string>, readonly body: Buffer } | undefined {
  const way = random.below(12)
  if (requestBody === undefined ? way > 1 : way === 0) return undefined
  if (way < 3) {
    const { headers, body } = random.pick(HOSTILE_BODIES)
    return { headers: { ...headers }, body: body() }
  }
  const type = Object.keys(requestBody?.content ?? {})[0] ?? 'application/json'
  const headers = { 'content-type': random.once(15) ? random.pick(TYPES) : type === 'multipart/form-data' ? 'multipart/form-data; boundary=b' : type }
  if (type === 'multipart/form-data') return { headers, body: multipart(random) }
  if (type !== 'application/json') return { headers, body: random.mutate(gzipSync(tar([{ path: 'a', content: 'b' }])), 3) }
  const value = valueOf(random, requestBody?.content[type]?.schema)
  return { headers, body: random.once(2) ? Buffer.from(JSON.stringify(value)) : jsonText(random, disturb(random, value, 3)) }
}

function headersOf (random: Random, hasBody: boolean): Record<string, string> {
  const way = random.below(16)
  if (way === 0) return { authorization: random.pick(['', 'Bearer', 'Bearer x', 'Basic eA==', 'Basic !', `Bearer ${'x'.repeat(5_000)}`]) }
  if (way === 1) return { 'idempotency-key': random.pick(['a', '', 'x'.repeat(300), '\xff']) }
  // Whoever asks for another protocol and goes on speaking this one is cut off.
  if (way === 2 && !hasBody) return { upgrade: 'websocket', connection: 'Upgrade', 'sec-websocket-key': random.pick(['dGhlIHNhbXBsZSBub25jZQ==', 'x']), 'sec-websocket-version': random.pick(['13', '0']) }
  if (way === 3) return { accept: random.pick(['text/event-stream', 'a', '*/*']), range: random.pick(['bytes=0-', 'x']), 'content-encoding': random.pick(['gzip', 'br', 'x']) }
  return {}
}

export const fuzz: Fuzz = {
  seeds: [],
  async start (atEnd) {
    const server = await startApiServer(atEnd)
    await server.call({ method: 'POST', path: '/volumes', headers: { 'content-type': 'application/json' }, body: Buffer.from('{"name":"known","size_gb":1}') })
    return async random => {
      const operation = random.pick(server.operations)
      const made = bodyOf(random, operation)
      const call: RawCall = { method: operation.method, path: pathOf(random, operation), headers: { ...headersOf(random, made !== undefined), ...made?.headers }, ...made === undefined ? {} : { body: made.body } }
      const fault = await server.fault(operation, call)
      return { input: `${call.method} ${call.path} ${JSON.stringify(call.headers)} ${JSON.stringify(call.body?.subarray(0, SHOWN).toString('latin1'))}`, ...fault === undefined ? {} : { fault } }
    }
  }
}
