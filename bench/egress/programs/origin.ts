// The origin of all sides: a small answer, a body of any length, and a path that accepts uploads. HTTP/1.1 and HTTP/2, as the client chooses.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2'
import { createServer } from 'node:https'
import type { ServerGiven } from '../child.ts'
import { given, say } from './given.ts'

const small = Buffer.alloc(100, 'x')
const block = Buffer.alloc(1024 * 1024, 'x')
const windowBytes = 8 * 1024 * 1024

const { place, cert, key, http2 } = given<ServerGiven & { readonly http2: boolean }>()

function answer (request: IncomingMessage | Http2ServerRequest, response: ServerResponse | Http2ServerResponse): void {
  if (request.method === 'PUT') {
    request.resume()
    request.on('end', () => {
      response.writeHead(200, { 'content-length': small.length })
      end(response, small)
    })
    return
  }
  const size = Number(/^\/bytes\/(\d+)$/.exec(request.url ?? '')?.[1] ?? 0)
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': size === 0 ? small.length : size })
  if (size === 0) end(response, small)
  else pour(response, size)
}

function pour (response: ServerResponse | Http2ServerResponse, size: number): void {
  let left = size
  const go = (): void => {
    while (left > block.length) {
      left -= block.length
      if (!write(response, block)) {
        response.once('drain', go)
        return
      }
    }
    end(response, block.subarray(0, left))
  }
  go()
}

// Both kinds of response have the same methods, but their types cannot be called as a union.
function write (response: ServerResponse | Http2ServerResponse, chunk: Buffer): boolean {
  return 'stream' in response ? response.write(chunk) : response.write(chunk)
}

function end (response: ServerResponse | Http2ServerResponse, chunk: Buffer): void {
  if ('stream' in response) response.end(chunk)
  else response.end(chunk)
}

const server = http2 ? createSecureServer({ cert, key, settings: { initialWindowSize: windowBytes } }, answer) : createServer({ cert, key }, answer)
server.listen(place.port, place.address, () => say('listening'))
