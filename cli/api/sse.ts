// Server-sent events of an answer, as the standard defines them: https://html.spec.whatwg.org/multipage/server-sent-events.html
import type { IncomingMessage } from 'node:http'
import type { Target } from '../connection/target.ts'
import { Failure } from '../failure.ts'
import { lost } from './failures.ts'

export interface ServerEvent { readonly id?: string, readonly event?: string, readonly data: string }

const MAX_EVENT_BYTES = 16 * 1024 * 1024

/** The events until the answer ends. An answer that is cut off because the server ended is an error. */
export async function * events (answer: IncomingMessage, target: Target): AsyncGenerator<ServerEvent> {
  let rest = ''
  let event: { id?: string, event?: string, data?: string } = {}
  try {
    for await (const chunk of answer.setEncoding('utf8') as AsyncIterable<string>) {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      if (rest.length > MAX_EVENT_BYTES) throw new Failure('an event of the server does not end')
      for (const raw of lines) {
        const line = raw.endsWith('\r') ? raw.slice(0, -1) : raw
        if (line !== '') {
          take(event, line)
          // Its lines alone may be short.
          if ((event.data?.length ?? 0) > MAX_EVENT_BYTES) throw new Failure('an event of the server does not end')
          continue
        }
        if (event.data !== undefined) yield { ...event, data: event.data }
        event = {}
      }
    }
  } catch (error) {
    throw error instanceof Failure || answer.errored?.name === 'AbortError' ? error : lost(target, 'while it was followed')
  }
}

function take (event: { id?: string, event?: string, data?: string }, line: string): void {
  const at = line.indexOf(':')
  if (at === 0) return
  const field = at < 0 ? line : line.slice(0, at)
  const value = at < 0 ? '' : line.slice(line[at + 1] === ' ' ? at + 2 : at + 1)
  if (field === 'data') event.data = event.data === undefined ? value : `${event.data}\n${value}`
  else if (field === 'id') event.id = value
  else if (field === 'event') event.event = value
}
