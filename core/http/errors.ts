// The errors of HTTP itself. The codes of 401 and 403 are those of the API that clients know.
import { defineError } from '../errors/define.ts'

export const Unauthorized = defineError('Unauthorized', 'unauthorized', (message: string) => message)

export const Forbidden = defineError('Forbidden', 'forbidden', (scope: string) => `missing required scope: ${scope}`)

export const RepositoryForbidden = defineError('Forbidden', 'forbidden', (repository: string) => `this key may not write to the repository ${repository}`)

export const RateLimited = defineError('rate_limited', 'rate-limited', (most: number, after: string) => `this key has made its ${most} requests; go on in ${after}`)

export const RouteNotFound = defineError('not_found', 'not-found', (method: string, path: string) => `there is no ${method} ${path}`)

export const UpgradeRequired = defineError('upgrade_required', 'invalid', () => 'this path is a WebSocket: send the request with Upgrade: websocket')

export const PreconditionFailed = defineError('precondition_failed', 'precondition', (wanted: string, now: string | undefined) =>
  now === undefined ? `there is nothing here yet, and If-Match names the version ${wanted}` : `it has changed since: If-Match names the version ${wanted}, and it is ${now}; read it again`)

export const Stopping = defineError('unavailable', 'unavailable', () => 'the server is stopping; try again')

export const IdempotencyKeyReused = defineError('idempotency_key_reused', 'conflict', () =>
  'this Idempotency-Key was used for a different request; use a new key')

export const IdempotencyInProgress = defineError('idempotency_in_progress', 'conflict', () =>
  'a request with this Idempotency-Key is still being worked on; send it again in a few seconds', { retryAfterSeconds: 5 })

export const DiskFull = defineError('insufficient_resources', 'conflict', () => 'the disk of the data folder is full')
