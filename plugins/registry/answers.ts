// Answers in the form that registry clients read: `{"errors":[{"code","message"}]}`.
import type { FastifyReply, FastifyRequest } from 'fastify'

const CODES = {
  unauthorized: { status: 401, code: 'UNAUTHORIZED' },
  denied: { status: 403, code: 'DENIED' },
  unsupported: { status: 404, code: 'UNSUPPORTED' },
  'body-refused': { status: 400, code: 'UNSUPPORTED' },
  unavailable: { status: 503, code: 'UNAVAILABLE' }
} as const

export type RegistryError = keyof typeof CODES

/** Status and body of an error. */
export function errorAnswer (error: RegistryError, message: string): { status: number, body: { errors: Array<{ code: string, message: string }> } } {
  const { status, code } = CODES[error]
  return { status, body: { errors: [{ code, message }] } }
}

/** Sends an error through Fastify. */
export function sendError (reply: FastifyReply, error: RegistryError, message: string): FastifyReply {
  const { status, body } = errorAnswer(error, message)
  return reply.code(status).header('docker-distribution-api-version', 'registry/2.0').send(body)
}

/** Asks for a login: clients send their name and password to `realm` and come back with a token. */
export function askForLogin (request: FastifyRequest, reply: FastifyReply): FastifyReply {
  reply.header('www-authenticate', `Bearer realm="${schemeOf(request)}://${request.host.replace(/["\\]/g, '')}/v2/token",service="berth"`)
  return sendError(reply, 'unauthorized', 'registry authentication required')
}

// Behind a TLS proxy the client must be sent back through that proxy. A client that lies here misleads only itself.
function schemeOf (request: FastifyRequest): string {
  const forwarded = request.headers['x-forwarded-proto']
  return forwarded === 'https' || forwarded === 'http' ? forwarded : request.protocol
}
