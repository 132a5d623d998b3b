// `If-Match` on what can be read at the same address: a change is made only to the version that its client has seen.
import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler, preHandlerAsyncHookHandler, RouteOptions } from 'fastify'
import { InvalidRequest } from '../errors/common.ts'
import { PreconditionFailed, Stopping } from './errors.ts'
import { createTurns, type Named, type Turns } from './turns.ts'

export const CONDITIONAL_METHODS: ReadonlySet<string> = new Set(['PATCH', 'PUT', 'DELETE'])
const MAX_TAGS = 20
const PASSED_ON = ['content-type', 'retry-after', 'x-should-retry']

export const CHANGING_METHODS: ReadonlySet<string> = new Set([...CONDITIONAL_METHODS, 'POST'])

/** The function that ends the turn of a request. */
type Ends = WeakMap<FastifyRequest, () => void>

/** Adds the hooks to routes that change something. To be called for each route before it is compiled. */
export function checkVersions (app: FastifyInstance): (route: RouteOptions) => void {
  // Between the check of a version and the change, no other request changes the thing, whether it names a version or not.
  const turns = createTurns()
  const ends: Ends = new WeakMap()
  const endTurn: onSendHookHandler<unknown> = (request, _reply, payload, done) => {
    ends.get(request)?.()
    done(null, payload)
  }
  return (route) => {
    const methods = [route.method].flat()
    const place = placeOf(route.url, route.config?.replaces)
    // The registry has one route for everything, and versions of its own.
    if (place === undefined || methods.includes('GET') || !methods.some((method) => CHANGING_METHODS.has(method))) return
    const isConditional = methods.some((method) => CONDITIONAL_METHODS.has(method))
    route.preHandler = [...[route.preHandler ?? []].flat(), waitForTurn(app, turns, ends, place), ...isConditional ? [checkBefore(app, turns, ends, place)] : []]
    route.onSend = [...[route.onSend ?? []].flat(), endTurn]
  }
}

interface Place {
  readonly url: string
  /** path of the thing that a route changes, wholly or in part: `/instances/:id` */
  readonly kind: string
  /** the parameter that names the thing; absent: it may be any of its kind */
  readonly parameter?: string
}

function placeOf (url: string, replaces: string | undefined): Place | undefined {
  if (replaces !== undefined) return { url, kind: replaces }
  const [, collection, parameter] = url.split('/')
  if (collection === undefined || parameter === undefined || !/^[:*]/.test(parameter)) return undefined
  return { url, kind: `/${collection}/${parameter}`, parameter: parameter.replace(/^:/, '') }
}

/** Requests without a version run in parallel with one another, but not with a request that names one. */
function waitForTurn (app: FastifyInstance, turns: Turns, ends: Ends, { kind, parameter }: Place): preHandlerAsyncHookHandler {
  return async (request) => {
    if (namesVersion(request) || !app.hasRoute({ method: 'GET', url: kind })) return
    const ref = parameter === undefined ? '' : String(new Map(Object.entries(request.params ?? {})).get(parameter))
    ends.set(request, await turns.change(kind, ref))
  }
}

function namesVersion ({ method, headers }: FastifyRequest): boolean {
  return CONDITIONAL_METHODS.has(method) && headers['if-match'] !== undefined
}

function checkBefore (app: FastifyInstance, turns: Turns, ends: Ends, { url, kind }: Place): preHandlerAsyncHookHandler {
  return async (request, reply) => {
    const header = request.headers['if-match']
    if (header === undefined) return
    const wanted = tagsOf(header)
    if (!app.hasRoute({ method: 'GET', url })) throw InvalidRequest('header if-match: what this path names has no version')
    const path = pathOf(request)
    // A name or the beginning of an id names the same thing.
    const thing = await read(app, request, url === kind ? path : path.split('/', 3).join('/'))
    if (thing.statusCode === 200) ends.set(request, await turns.alone(kind, namesIn(thing.body)))
    const now = url === kind && thing.statusCode !== 200 ? thing : await read(app, request, path)
    if (now.statusCode === 404) {
      if (request.method === 'PUT') throw PreconditionFailed(header, undefined)
      // The change itself reports what does not exist.
      return
    }
    // A key that may change a thing may lack the scope to read it.
    if (now.statusCode !== 200) return await passOn(now, reply)
    const tag = String(now.headers.etag)
    if (wanted === '*' || wanted.includes(opaque(tag))) return
    reply.header('etag', tag)
    throw PreconditionFailed(header, tag)
  }
}

type Answer = Awaited<ReturnType<typeof read>>

/** The answer to a GET with the sender's key. */
async function read (app: FastifyInstance, { headers: { authorization, cookie } }: FastifyRequest, path: string) {
  if (app.drainSignal.aborted) throw Stopping()
  return await app.inject({ method: 'GET', url: path, headers: { ...authorization === undefined ? {} : { authorization }, ...cookie === undefined ? {} : { cookie } } })
}

function pathOf ({ url }: FastifyRequest): string {
  return url.split('?')[0] ?? ''
}

async function passOn ({ statusCode, headers, body }: Answer, reply: FastifyReply): Promise<FastifyReply> {
  for (const name of PASSED_ON) if (headers[name] !== undefined) reply.header(name, headers[name])
  return await reply.code(statusCode).serializer(String).send(body)
}

function namesIn (body: string): Named {
  const found: unknown = JSON.parse(body)
  if (typeof found !== 'object' || found === null || !('id' in found) || typeof found.id !== 'string') return {}
  return { id: found.id, ...'name' in found && typeof found.name === 'string' ? { name: found.name } : {} }
}

/** Tags are compared without the mark of weak tags, which all tags of this server have: an answer differs in its compression alone. */
function tagsOf (header: string): '*' | readonly string[] {
  const text = header.trim()
  if (text === '*') return text
  const tags = text.split(',').map((tag) => opaque(tag.trim()))
  if (tags.length > MAX_TAGS || !tags.every((tag) => tag.length > 2 && tag.startsWith('"') && tag.endsWith('"'))) {
    throw InvalidRequest(`header if-match must be * or at most ${MAX_TAGS} entity tags, each as in the ETag of an answer`)
  }
  return tags
}

function opaque (tag: string): string {
  return tag.startsWith('W/') ? tag.slice(2) : tag
}
