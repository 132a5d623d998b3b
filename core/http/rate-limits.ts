// Limits how many requests a key may send in a period. Routes that need no key are not counted, nor those of the registry, which moves images in many small requests.
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance } from 'fastify'
import { countedFor } from '../auth/counted-for.ts'
import { RateLimited } from './errors.ts'

export interface RateLimits {
  /** 0: no limit */
  readonly requests: number
  readonly perMs: number
}

/** Must be registered before the routes, and after the hook that reads the key. */
export async function limitRates (app: FastifyInstance, { requests, perMs }: RateLimits): Promise<void> {
  if (requests === 0) return
  await app.register(rateLimit, {
    max: requests,
    timeWindow: perMs,
    keyGenerator: ({ principal }) => countedFor(principal),
    allowList: ({ principal }) => principal === null,
    errorResponseBuilder: (_request, { max, after }) => RateLimited(max, after)
  })
}
