// `Idempotency-Key`: a create that is sent twice happens once, even after a restart or with several servers on one database.
// Only answers below 400 are remembered: an error created nothing, and its cause may be gone the next time.
import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler, preHandlerHookHandler, RouteOptions } from 'fastify'
import type { Knex } from 'knex'
import { InvalidRequest } from '../errors/common.ts'
import { hostClocks, steadyClock, type Clocks } from '../steady-clock.ts'
import { IdempotencyInProgress, IdempotencyKeyReused } from './errors.ts'
import { OwnClaims } from './idempotency-own.ts'
import { stillWorks } from './idempotency-owner.ts'
import { createIdempotencyRepository, type Claim, type IdempotencyRepository, type StoredAnswer } from './idempotency-repository.ts'
import { keptHeaders } from './kept-headers.ts'
import { contentHashOf, placeOf } from './same-request.ts'

const REMEMBER_MS = 24 * 3_600_000
const SWEEP_MS = 3_600_000
const MAX_TRIES = 5

interface Time {
  /** epoch ms */
  now (): number
  /** for how many ms the wall clock has agreed with elapsed time */
  steadyFor (): number
}

/** What the hooks of one request pass on to each other. */
type Claims = WeakMap<FastifyRequest, Claim>

/**
 * Gives routes with `idempotent: true` their hooks. To be called for each route before it is compiled.
 *
 * Servers share the table, and answers must survive a restart, so their age is measured by the wall clock, each host's by its own. But setting the clock must not make an answer old:
 * after that, an answer is forgotten only when the clock has agreed with elapsed time for as long as answers are kept.
 */
export function rememberAnswers (app: FastifyInstance, { database, hostId }: { readonly database: Knex, readonly hostId: string }, clocks: Clocks = hostClocks): (route: RouteOptions) => void {
  const repository = createIdempotencyRepository(database, hostId)
  const claims: Claims = new WeakMap()
  const time: Time = { now: clocks.now, steadyFor: steadyClock(clocks) }
  const own = new OwnClaims(hostId)
  const before = claimBefore(repository, claims, own, time)
  const after = answerAfter(repository, claims, own)
  sweepRegularly(app, repository, own, time)
  return (route) => {
    if (route.config?.idempotent !== true) return
    route.preHandler = [before, ...[route.preHandler ?? []].flat()]
    // last, so that what is stored is what is sent
    route.onSend = [...[route.onSend ?? []].flat(), after]
  }
}

function claimBefore (repository: IdempotencyRepository, claims: Claims, own: OwnClaims, time: Time): preHandlerHookHandler {
  return async (request, reply) => {
    const key = request.headers['idempotency-key']
    if (key === undefined) return
    const wanted = claimFor(request, checkKey(key), own.owner, time.now())
    // This request needs the database, which may be back.
    await own.storeAll(repository.answer)
    const known = await own.begin(wanted.id, async () => await acquire(repository, own, wanted, time.steadyFor()))
    if (known === undefined) { claims.set(request, wanted); return }
    if (known.requestHash !== wanted.requestHash) throw IdempotencyKeyReused()
    if (known.answer === undefined) throw IdempotencyInProgress()
    const { status, headers, body } = known.answer
    return reply.code(status).headers(headers).header('idempotent-replayed', 'true').serializer(String).send(body)
  }
}

// Returns the claim that is there already; undefined when `wanted` was stored.
async function acquire (repository: IdempotencyRepository, own: OwnClaims, wanted: Claim, steadyMs: number): Promise<Claim | undefined> {
  for (let attempt = 0; attempt < MAX_TRIES; attempt++) {
    if (await repository.insert(wanted)) return undefined
    const stored = await repository.find(wanted.id)
    // The claim is gone: the other request failed, so this one may try.
    if (stored === undefined) continue
    const answer = stored.answer ?? (stored.owner === own.owner ? own.unstored(stored.id) : undefined)
    const known: Claim = answer === undefined ? stored : { ...stored, answer }
    const expired = steadyMs >= REMEMBER_MS && known.expiresAt <= wanted.createdAt
    const abandoned = known.answer === undefined && (known.owner === own.owner ? !own.isWorking(known.id) : !stillWorks(known.owner, own.hostId))
    if (!expired && (!abandoned || known.requestHash !== wanted.requestHash)) return known
    if (await repository.takeOver(known, wanted)) return undefined
  }
  throw IdempotencyInProgress()
}

function answerAfter (repository: IdempotencyRepository, claims: Claims, own: OwnClaims): onSendHookHandler {
  return async (request, reply, payload: unknown) => {
    const claim = claims.get(request)
    if (claim === undefined) return payload
    // The answer of an error passes this hook a second time.
    claims.delete(request)
    const answer = storable(reply, payload)
    try {
      if (answer === undefined) await repository.release(claim)
      else await repository.answer(claim, answer)
      own.end(claim)
    } catch (error) {
      // What was done is done, and whoever asked should know of it.
      request.log.warn({ err: error }, 'what became of a request with an idempotency key could not be stored; it is remembered until this server ends')
      own.end(claim, answer)
    }
    return payload
  }
}

/** Undefined for an answer that is not remembered. */
function storable (reply: FastifyReply, payload: unknown): StoredAnswer | undefined {
  const body = payload == null ? '' : payload
  if (reply.statusCode >= 400 || typeof body !== 'string') return undefined
  return { status: reply.statusCode, headers: keptHeaders(reply), body }
}

function claimFor (request: FastifyRequest, key: string, owner: string, now: number): Claim {
  return {
    id: createHash('sha256').update(`${placeOf(request)}\0${key}`).digest('hex'),
    requestHash: contentHashOf(request, key),
    owner,
    createdAt: now,
    expiresAt: now + REMEMBER_MS
  }
}

function checkKey (key: string | string[]): string {
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key)) throw InvalidRequest('header idempotency-key must have 1 to 255 printable characters and no space')
  return key
}

function sweepRegularly (app: FastifyInstance, repository: IdempotencyRepository, own: OwnClaims, { now, steadyFor }: Time): void {
  const work = async (): Promise<void> => {
    const time = now()
    await own.storeAll(repository.answer)
    // A clock that was set back leaves dates that are too far ahead.
    await repository.shorten(time + REMEMBER_MS)
    if (steadyFor() >= REMEMBER_MS) await repository.deleteExpired(time)
  }
  const sweep = (): void => {
    work().catch((error: unknown) => app.log.warn({ err: error }, 'expired idempotency keys could not be removed'))
  }
  const timer = setInterval(sweep, SWEEP_MS).unref()
  app.addHook('onClose', (_instance, done) => { clearInterval(timer); done() })
}
