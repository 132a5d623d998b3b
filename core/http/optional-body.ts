// For routes with `optionalBody: true`: no body means an empty object, whose fields have their defaults.
import type { FastifyRequest } from 'fastify'

export async function assumeEmptyBody (request: FastifyRequest): Promise<void> {
  request.body ??= {}
}
