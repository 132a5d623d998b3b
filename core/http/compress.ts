// Compresses large answers to reads, for clients that accept it.
import compress from '@fastify/compress'
import type { FastifyInstance, RouteOptions } from 'fastify'

/** Smaller answers cost more to compress than to send. */
const THRESHOLD_BYTES = 16 * 1024

/** Must be registered before the routes. Bodies of requests are not touched: a small one could grow without bounds. */
export async function compressAnswers (app: FastifyInstance): Promise<void> {
  await app.register(compress, { global: true, globalDecompression: false, threshold: THRESHOLD_BYTES, encodings: ['gzip'], zlibOptions: { level: 1 }, customTypes: /^application\/(?:json|yaml)(?:;|$)/ })
}

/** Leaves out what is a stream, or an answer that may be remembered. */
export function chooseCompression (route: RouteOptions): void {
  if (route.websocket === true || route.config?.produces !== undefined || [route.method].flat().some((method) => method !== 'GET' && method !== 'HEAD')) route.compress = false
}
