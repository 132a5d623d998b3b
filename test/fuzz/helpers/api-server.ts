// The server of programs/api-server.ts as a process of its own, its document, and what is wrong with an answer.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Value } from 'typebox/value'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { withoutReferences } from '../../helpers/api-document.ts'
import { Hold } from './hold.ts'
import type { JsonSchema } from './json-schema.ts'
import { rawCall, type RawAnswer, type RawCall } from './raw-call.ts'

const PROGRAM = fileURLToPath(new URL('../programs/api-server.js', import.meta.url))
const PATIENCE_MS = 30_000
const KEPT_LOG = 4_000

export interface Operation {
  readonly method: string
  readonly path: string
  readonly parameters?: readonly { readonly in: string, readonly name: string, readonly required?: boolean, readonly schema?: JsonSchema }[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema?: JsonSchema }>> }
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>> }>>
}

export interface ApiServer {
  readonly operations: readonly Operation[]
  /** Sends a request, with an admin key unless it has headers that say otherwise; tells what is wrong with what came of it. */
  fault (operation: Operation, call: RawCall): Promise<string | undefined>
  call (call: RawCall): Promise<RawAnswer>
}

export async function startApiServer (atEnd: (work: () => unknown) => void): Promise<ApiServer> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-api-test-'))
  await chmod(folder, 0o711)
  const isRoot = process.getuid?.() === 0
  const child = spawn('unshare', [...isRoot ? [] : ['--map-root-user'], '--net', 'sh', '-c', 'ip link set lo up; exec "$0" "$@"', process.execPath, '--enable-source-maps', PROGRAM, folder], { stdio: ['pipe', 'pipe', 'pipe'] })
  let log = ''
  let hasEnded = false
  child.once('exit', () => { hasEnded = true })
  const note = (text: Buffer): void => { log = (log + text.toString()).slice(-KEPT_LOG) }
  child.stderr.on('data', note)
  atEnd(async () => {
    child.stdin.end()
    if (!hasEnded) await once(child, 'exit')
    await rm(folder, { recursive: true, force: true })
  })
  const lines = createInterface({ input: child.stdout })
  // Its log comes on the same stream, before and after.
  const pid = await new Promise<number>((resolve, reject) => {
    child.once('exit', code => { reject(new Error(`the server ended with ${code}: ${log}`)) })
    lines.on('line', line => {
      note(Buffer.from(`${line}\n`))
      if (/^\{"pid":\d+\}$/.test(line)) resolve(JSON.parse(line).pid)
    })
  })
  const where = { socketPath: join(folder, 'api.sock') }
  const hold = new Hold(pid)
  const call = async (one: RawCall): Promise<RawAnswer> => {
    const answer = await rawCall(where, { ...one, headers: { authorization: `Bearer ${ADMIN_KEY}`, ...one.headers } }, PATIENCE_MS)
    if (typeof answer === 'string') throw new Error(`${one.method} ${one.path}: ${answer}`)
    return answer
  }
  const document: { readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'method' | 'path'>>>>> } = JSON.parse((await call({ method: 'GET', path: '/openapi.json' })).text)
  const operations = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ ...withoutReferences(operation, document), method: method.toUpperCase(), path })))
  return {
    operations,
    call,
    async fault (operation, one) {
      hold.begin()
      const answer = await rawCall(where, { ...one, headers: { authorization: `Bearer ${ADMIN_KEY}`, ...one.headers } }, PATIENCE_MS)
      if (hasEnded) return `the server has ended: ${log}`
      if (typeof answer === 'string') return answer
      return hold.fault() ?? answerFault(operation, answer, log)
    }
  }
}

/** What is wrong with an answer, by the document. */
function answerFault (operation: Operation, { status, type, text }: RawAnswer, log: string): string | undefined {
  if (status === 101) return undefined
  const shown = `${status} ${type} ${text.slice(0, 1_000)}`
  const said = operation.responses[String(status)] ?? operation.responses['default']
  // A fault of the server's own may be documented everywhere, and is one all the same.
  if (status === 500 || (status > 500 && said === undefined)) return `${shown}\n${log}`
  if (status >= 400) return /^\{"code":"[a-z_]+","message":"./.test(text) || status === 401 || operation.method === 'HEAD' ? undefined : `no error body: ${shown}`
  if (said === undefined) return `not documented: ${shown}`
  const schema = said.content?.['application/json']?.schema
  if (schema === undefined || !type.startsWith('application/json')) return undefined
  const value: unknown = JSON.parse(text)
  if (Value.Check(schema, value)) return undefined
  return `not as documented: ${JSON.stringify(Value.Errors(schema, value).slice(0, 3))} ${shown}`
}
