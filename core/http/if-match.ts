// `If-Match` on what can be read at the same address: a change is made only to the version that its sender has seen.
import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler, preHandlerAsyncHookHandler, RouteOptions } from 'fastify'
import { InvalidRequest } from '../errors/common.ts'
import { createLocks, type Locks } from '../jobs/locks.ts'
import { PreconditionFailed, Stopping } from './errors.ts'

export const CONDITIONAL_METHODS: ReadonlySet<string> = new Set(['PATCH', 'PUT', 'DELETE'])
const MAX_TAGS = 20
const PASSED_ON = ['content-type', 'retry-after', 'x-should-retry']

/** What ends the turn of a request. */
type Turns = WeakMap<FastifyRequest, () => void>

/** Gives routes that change something their hooks. To be called for each route before it is compiled. */
export function checkVersions (app: FastifyInstance): (route: RouteOptions) => void {
  // Of two that have seen the same version the second must see what the first has made of it.
  const locks = createLocks()
  const turns: Turns = new WeakMap()
  const endTurn: onSendHookHandler<unknown> = (request, _reply, payload, done) => {
    turns.get(request)?.()
    done(null, payload)
  }
  return (route) => {
    if (![route.method].flat().some((method) => CONDITIONAL_METHODS.has(method))) return
    route.preHandler = [...[route.preHandler ?? []].flat(), checkBefore(app, locks, turns, route.url)]
    route.onSend = [...[route.onSend ?? []].flat(), endTurn]
  }
}

function checkBefore (app: FastifyInstance, locks: Locks, turns: Turns, url: string): preHandlerAsyncHookHandler {
  return async (request, reply) => {
    const header = request.headers['if-match']
    if (header === undefined) return
    const wanted = tagsOf(header)
    if (!app.hasRoute({ method: 'GET', url })) throw InvalidRequest('header if-match: what this path names has no version')
    const first = await read(app, request)
    if (first.statusCode === 200) turns.set(request, await takeTurn(locks, `${url} ${idIn(first.body) ?? request.url}`))
    const now = first.statusCode === 200 ? await read(app, request) : first
    if (now.statusCode === 404) {
      if (request.method === 'PUT') throw PreconditionFailed()
      // The change itself says what is not there.
      return
    }
    // Not every key that may change may also read.
    if (now.statusCode !== 200) return await passOn(now, reply)
    const tag = String(now.headers.etag)
    if (wanted === '*' || wanted.includes(opaque(tag))) return
    reply.header('etag', tag)
    throw PreconditionFailed()
  }
}

type Answer = Awaited<ReturnType<typeof read>>

/** What the sender would be answered to a GET, with its key. */
async function read (app: FastifyInstance, { url, headers: { authorization } }: FastifyRequest) {
  if (app.drainSignal.aborted) throw Stopping()
  return await app.inject({ method: 'GET', url: url.split('?')[0] ?? '', headers: authorization === undefined ? {} : { authorization } })
}

async function passOn ({ statusCode, headers, body }: Answer, reply: FastifyReply): Promise<FastifyReply> {
  for (const name of PASSED_ON) if (headers[name] !== undefined) reply.header(name, headers[name])
  return await reply.code(statusCode).serializer(String).send(body)
}

/** Returns, when it is this one's turn, what ends it. */
async function takeTurn (locks: Locks, key: string): Promise<() => void> {
  return await new Promise((resolve) => {
    void locks.hold(key, async () => { await new Promise<void>((_resolve) => { resolve(_resolve) }) })
  })
}

/** Names and beginnings of ids lead to the same thing. */
function idIn (body: string): string | undefined {
  const found: unknown = JSON.parse(body)
  return typeof found === 'object' && found !== null && 'id' in found && typeof found.id === 'string' ? found.id : undefined
}

/** Tags are compared without the mark of weak ones, which all of this server's have: an answer differs in its compression alone. */
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
