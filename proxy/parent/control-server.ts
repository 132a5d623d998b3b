// The control socket: policy revisions come in, whole or as differences, the audit log and figures go out. Only the server's user can open it.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { parseChange, parseRevision } from './parse-revision.ts'
import type { ControlRefusal, OwnRanges, PolicyChange, PolicyRevision, TracedEntry } from '../contract/control.ts'
import type { Roster } from '../workers/roster.ts'
import { OtherBase, StaleRevision } from '../workers/policy-book.ts'
import { PolicyFault } from '../workers/policy-fault.ts'
import type { AuditPage, AuditQuery } from '../audit/read.ts'

export interface ControlOptions {
  readonly roster: Pick<Roster, 'revision' | 'size'>
  /** Resolves once the revision is in force in every worker. */
  readonly enforce: (revision: PolicyRevision) => Promise<void>
  /** The same for a difference from the enforced revision. */
  readonly change: (change: PolicyChange) => Promise<void>
  /** the newest revision that is in force in every worker; `null` before the first */
  readonly inForce: () => number | null
  readonly certificatePem: string
  readonly ranges: OwnRanges
  readonly readAudit: (query: AuditQuery) => Promise<AuditPage>
  /** takes out the requests that are to become traces, so that each is returned once */
  readonly takeTraced: () => readonly TracedEntry[]
  readonly metrics: () => Promise<string>
  readonly onFailure: (error: unknown) => void
}

interface Answer {
  readonly status: number
  readonly body: unknown
}

const MAX_BODY_BYTES = 64 * 1024 * 1024
const MAX_PAGE = 10_000

/** Makes the server; the caller lets it listen. */
export function createControl (options: ControlOptions): Server {
  return createServer((request, response) => {
    answer(request, options).then(result => send(response, result), error => {
      options.onFailure(error)
      send(response, { status: 500, body: { code: 'internal_error', message: 'The request failed.' } })
    })
  })
}

async function answer (request: IncomingMessage, options: ControlOptions): Promise<Answer> {
  // Not every request target is a URL: `//` and `http://[` are not.
  if (!URL.canParse(request.url ?? '/', 'http://control')) return { status: 400, body: { code: 'invalid_request', message: 'The request target is not a URL.' } }
  const url = new URL(request.url ?? '/', 'http://control')
  switch (`${request.method} ${url.pathname}`) {
    case 'PUT /policy': return await takePolicy(request, options, async body => { await options.enforce(parseRevision(body)) })
    case 'PATCH /policy': return await takePolicy(request, options, async body => { await options.change(parseChange(body)) })
    case 'GET /policy': return { status: 200, body: { revision: options.inForce(), vms: options.roster.size } }
    case 'GET /ranges': return { status: 200, body: options.ranges }
    case 'GET /audit': return await getAudit(url.searchParams, options)
    case 'GET /traces': return { status: 200, body: { entries: options.takeTraced() } }
    case 'GET /ca': return { status: 200, body: options.certificatePem }
    case 'GET /metrics': return { status: 200, body: await options.metrics() }
    case 'GET /health': return options.roster.revision === null ? { status: 503, body: { status: 'waiting for a policy' } } : { status: 200, body: { status: 'ok' } }
    default: return { status: 404, body: { code: 'not_found', message: 'There is no such route.' } }
  }
}

async function takePolicy (request: IncomingMessage, { roster }: ControlOptions, take: (body: unknown) => Promise<void>): Promise<Answer> {
  const body = await readBody(request)
  if (body === undefined) return { status: 413, body: { code: 'too_large', message: `A revision has at most ${MAX_BODY_BYTES} bytes.` } }
  try {
    await take(parseJson(body))
    return { status: 200, body: { revision: roster.revision } }
  } catch (error) {
    if (error instanceof PolicyFault) return { status: 400, body: { code: 'invalid_policy', message: error.message, at: error.at } satisfies ControlRefusal }
    const enforced = roster.revision === null ? {} : { revision: roster.revision }
    if (error instanceof StaleRevision) return { status: 409, body: { code: 'stale_revision', message: error.message, ...enforced } satisfies ControlRefusal }
    if (error instanceof OtherBase) return { status: 409, body: { code: 'other_base', message: error.message, ...enforced } satisfies ControlRefusal }
    throw error
  }
}

async function getAudit (query: URLSearchParams, options: ControlOptions): Promise<Answer> {
  const vm = query.get('vm') ?? ''
  const after = Number(query.get('after') ?? 0)
  const limit = Number(query.get('limit') ?? 1000)
  const valid = vm !== '' && Number.isSafeInteger(after) && after >= 0 && Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE
  if (!valid) return { status: 400, body: { code: 'invalid_request', message: `vm is required, after is a number from 0 on, limit is between 1 and ${MAX_PAGE}.` } }
  return { status: 200, body: await options.readAudit({ vm, after, limit }) }
}

/** Invalid JSON is a fault of the policy. The parser's own message is left out, since it could contain a piece of a secret. */
function parseJson (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw new PolicyFault('the revision', 'is not JSON')
    throw error
  }
}

async function readBody (request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request) {
    bytes += chunk.length
    if (bytes > MAX_BODY_BYTES) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function send (response: ServerResponse, { status, body }: Answer): void {
  const text = typeof body === 'string' ? body : `${JSON.stringify(body)}\n`
  response.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/json' })
  response.end(text)
}
