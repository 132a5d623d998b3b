// The answer of GET events: the log of a build as Server-Sent Events, from its first line or from where a client was interrupted, to the build's end.
import { sseComment } from '../../../core/http/sse.ts'
import { isFinal, type BuildStatus } from '../record.ts'
import { followLog, isWhole, lineEnd, type FollowLog, type LogLine } from './log-reader.ts'

export interface EventsOptions extends Omit<FollowLog, 'from'> {
  /** `Last-Event-ID` of a client that comes back */
  readonly lastEventId: string | undefined
  /** how the build ended and when, once it is over */
  readonly end: () => Promise<{ readonly status: BuildStatus, readonly at: number } | undefined>
}

export async function * buildEvents (options: EventsOptions): AsyncGenerator<string, void, void> {
  // Sends the headers at once, even when there is no line yet.
  yield sseComment('build')
  const { lastEventId = '' } = options
  let place = /^\d{1,15}$/.test(lastEventId) ? await lineEnd(options.path, Number(lastEventId)) : 0
  for await (const lines of followLog({ ...options, from: place })) {
    const whole = lines.filter(({ text }) => isWhole(text))
    yield lines.length === 0 ? heartbeat() : whole.map(eventOf).join('')
    place = lines.at(-1)?.end ?? place
    if (whole.some(({ text }) => endsBuild(text))) return
  }
  // A server that was killed, or a full disk, may have kept the end out of the log; and a client that reconnects after the last line still needs it.
  const end = options.signal.aborted ? undefined : await options.end()
  if (end !== undefined) yield eventOf({ text: JSON.stringify({ type: 'status', timestamp: new Date(end.at).toISOString(), status: end.status }), end: place })
}

function eventOf ({ text, end }: LogLine): string {
  return `id: ${end}\ndata: ${text}\n\n`
}

function heartbeat (): string {
  return `data: ${JSON.stringify({ type: 'heartbeat', timestamp: new Date().toISOString() })}\n\n`
}

function endsBuild (text: string): boolean {
  if (!text.startsWith('{"type":"status"')) return false
  const { status }: { status: BuildStatus } = JSON.parse(text)
  return isFinal(status)
}
