// A request that its client repeats after it gave it up is given the answer of the one that it repeats. The official SDKs give up after a minute and then repeat any request, a create included, without an
// Idempotency-Key; they count their attempts in a header. The first attempt goes on all the same, and its repeat would be taken for another request: for a name that is taken, or a standby of what is in standby.
import { createHash, randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler, preHandlerAsyncHookHandler, RouteOptions } from 'fastify'
import { unlessAborted } from '../jobs/unless-aborted.ts'
import { Attempts, type Answer, type Attempt } from './attempts.ts'
import { untilStop, whenClosed } from './client-gone.ts'
import { Stopping } from './errors.ts'
import { CHANGING_METHODS } from './if-match.ts'
import { KEPT_HEADERS, keptHeaders } from './kept-headers.ts'
import { contentHashOf, placeOf } from './same-request.ts'

const COUNT = 'x-stainless-retry-count'
const GIVEN_AGAIN = [...KEPT_HEADERS, 'x-should-retry', 'etag']

/** What the hooks of one request pass on to each other. */
type Begun = WeakMap<FastifyRequest, Attempt>

/**
 * Gives the routes that change something their hooks. To be called for each route before it is compiled. All of it is in memory alone: a repeat that reaches another server, or the next one, is a request of its own.
 * A repeat passes the check of its key like any other request.
 */
export function answerRepeats (app: FastifyInstance): (route: RouteOptions) => void {
  const attempts = new Attempts()
  const begun: Begun = new WeakMap()
  // One that the clients do not know: the hash of a body must tell nothing of the body.
  const hashKey = randomBytes(32)
  const idOf = (request: FastifyRequest): string => createHash('sha256').update([placeOf(request), request.headers['if-match'] ?? '', contentHashOf(request, hashKey)].join('\0')).digest('hex')
  const before = joinBefore(app, attempts, begun, idOf)
  const after = answerAfter(attempts, begun)
  app.addHook('onClose', (_instance, done) => { attempts.clear(); done() })
  return (route) => {
    const methods = [route.method].flat()
    // The registry has one route for everything, and answers by itself. A stream is no answer that could be kept.
    if (methods.includes('GET') || !methods.some((method) => CHANGING_METHODS.has(method)) || route.config?.produces !== undefined) return
    route.preHandler = [before, ...[route.preHandler ?? []].flat()]
    // last, so that what is given again is what was sent
    route.onSend = [...[route.onSend ?? []].flat(), after]
  }
}

function joinBefore (app: FastifyInstance, attempts: Attempts, begun: Begun, idOf: (request: FastifyRequest) => string): preHandlerAsyncHookHandler {
  return async (request, reply) => {
    const count = request.headers[COUNT]
    if (count === undefined || request.headers['idempotency-key'] !== undefined || request.principal === null) return
    const id = idOf(request)
    const earlier = Number(count) >= 1 ? attempts.take(id) : undefined
    const answer = earlier === undefined ? undefined : await answerOf(app, attempts, earlier, request, reply)
    if (answer === undefined) {
      begun.set(request, begin(attempts, id, request, reply))
      return
    }
    request.log.debug({ method: request.method, path: request.url, status: answer.status }, 'answered as the request that it repeats')
    return reply.code(answer.status).headers(answer.headers).serializer(String).send(answer.body)
  }
}

function begin (attempts: Attempts, id: string, request: FastifyRequest, reply: FastifyReply): Attempt {
  const attempt = attempts.begin(id)
  whenClosed(request, reply, () => {
    // Of a body that its own client cut off, the answer says just that. And an answer of which nothing is known here is none that could be given again.
    if (reply.raw.writableFinished || !request.raw.complete || isAnsweredOtherwise(reply)) attempts.end(attempt)
    else attempts.giveUp(attempt)
  })
  return attempt
}

/** Whether its route answers on the connection itself. */
function isAnsweredOtherwise (reply: FastifyReply): boolean {
  return reply.sent && !reply.raw.writableEnded
}

/** The answer of the attempt that a request repeats; undefined when there is none. @throws Stopping when the server stops first */
async function answerOf (app: FastifyInstance, attempts: Attempts, earlier: Attempt, request: FastifyRequest, reply: FastifyReply): Promise<Answer | undefined> {
  whenClosed(request, reply, () => {
    if (reply.raw.writableFinished) attempts.end(earlier)
    else attempts.giveUp(earlier)
  })
  // A body that is a stream is not needed again. Read to its end, as its sender may read nothing before, and one that leaves would not be noticed.
  request.raw.resume()
  try {
    return await unlessAborted(untilStop(app, request, reply), earlier.answered)
  } catch (error) {
    throw Stopping.from(error)
  }
}

function answerAfter (attempts: Attempts, begun: Begun): onSendHookHandler<unknown> {
  return (request, reply, payload, done) => {
    const attempt = begun.get(request)
    if (attempt !== undefined) attempts.answer(attempt, givable(reply, payload))
    done(null, payload)
  }
}

/** Undefined for a stream. */
function givable (reply: FastifyReply, payload: unknown): Answer | undefined {
  const body = payload ?? ''
  if (typeof body !== 'string' && !Buffer.isBuffer(body)) return undefined
  return { status: reply.statusCode, headers: keptHeaders(reply, GIVEN_AGAIN), body }
}
