// The parts of a multipart request as plain streams, and its errors as sentences.
import type { FastifyRequest } from 'fastify'
import { InvalidRequest } from '../../../core/errors/common.ts'
import type { FormPart } from './form.ts'

/** More than a form with 50 tags and 200 build arguments has. */
const MAX_PARTS = 300
const MAX_HEADERS_BYTES = 16 * 1024

/** The parts in their order; each must be read to its end before the next one. @param maxBytes limit on one part: a longer one is cut, and its reader must notice that */
export async function * partsOf (request: FastifyRequest, maxBytes: number): AsyncGenerator<FormPart, void, void> {
  if (!request.isMultipart()) throw notMultipart()
  // Every part as a stream, whether or not its sender calls it a file: the form decides.
  const parts = request.parts({
    isPartAFile: () => true,
    limits: { fileSize: maxBytes, files: MAX_PARTS, parts: MAX_PARTS, headerPairs: 50, headerSize: MAX_HEADERS_BYTES }
  })
  try {
    for await (const part of parts) {
      if (part.type !== 'file') throw new Error('a part came as a value')
      yield { name: part.fieldname, content: readable(part.file) }
    }
  } catch (error) {
    throw refusal(error)
  }
}

/** Reads and drops the rest of a request, so that its sender gets to read why it is refused. */
export function drain (request: FastifyRequest): void {
  request.raw.unpipe()
  request.raw.resume()
}

export function notMultipart (): Error {
  return InvalidRequest('the request body must be multipart/form-data, with the field source')
}

async function * readable (content: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  try {
    yield * content
  } catch (error) {
    throw refusal(error)
  }
}

/** An error of the parser is the sender's fault: it concerns only the request. */
function refusal (error: unknown): Error {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  switch (code) {
    case 'FST_PARTS_LIMIT': case 'FST_FILES_LIMIT': return InvalidRequest(`the request body must have at most ${MAX_PARTS} fields`)
    case 'FST_PROTO_VIOLATION': return InvalidRequest('the request body has a field with a name that is not allowed')
    default: return InvalidRequest(`the request body is no whole multipart/form-data${error instanceof Error ? ` (${error.message})` : ''}`)
  }
}
