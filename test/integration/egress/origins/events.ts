// Server-sent events, each of which is sent only after the client has said that it has the one before: a proxy that holds them back stops everything.
import type { Answering, Outgoing } from './host.ts'

/** How many events there are. */
export const EVENTS = 5

export function createEvents (): Answering {
  let stream: Outgoing | undefined
  const send = (number: number): void => {
    if (stream === undefined) return
    stream.write(`id: ${number}\nevent: count\ndata: ${JSON.stringify({ number })}\n\n`)
  }
  return ({ request, response, path, answer }) => {
    if (path === '/events') {
      request.resume()
      stream = response
      response.setHeader('content-type', 'text/event-stream')
      response.setHeader('cache-control', 'no-store')
      send(1)
    } else if (path.startsWith('/had/')) {
      const number = Number(path.slice('/had/'.length))
      answer(204, '')
      if (number < EVENTS) send(number + 1)
      else stream?.end()
    } else {
      answer(404, 'no such thing')
    }
  }
}
