// A VMM's REST API on a unix socket: one request on a connection of its own, bounded in time and in the size of its answer.
import { request } from 'node:http'
import { connectUnix } from '../../process/unix-socket.ts'
import { hasCode } from '../../errors/system-code.ts'
import { isRecord } from '../../json/is-record.ts'
import { traced } from '../../tracing/span.ts'
import { VmmRefused, VmmSilent, VmmUnreachable } from './errors.ts'

const MOST_ANSWER_BYTES = 2 ** 20
const MOST_REASON_CHARACTERS = 2000

export type RestMethod = 'GET' | 'PUT' | 'PATCH'

export interface RestClient {
  /**
   * The parsed body of the answer; undefined when there is none.
   * @throws VmmRefused with the VMM's own words, VmmSilent after `timeoutMs`, VmmUnreachable when nobody takes the request or the VMM ends over it
   */
  ask (method: RestMethod, path: string, body?: object, timeoutMs?: number): Promise<unknown>
}

export interface RestClientOptions {
  /** name of the VMM, in errors */
  readonly name: string
  /** where the socket is */
  readonly folder: string
  readonly socket: string
  /** prefix of each path */
  readonly prefix?: string
  readonly timeoutMs: number
}

export function createRestClient ({ name, folder, socket, prefix = '', timeoutMs: usualMs }: RestClientOptions): RestClient {
  return {
    async ask (method, path, body, timeoutMs = usualMs) {
      const call = `${method} ${path}`
      const signal = AbortSignal.timeout(timeoutMs)
      try {
        const { status, text } = await traced(`VMM ${call}`, { kind: 'client' }, async () => await exchange({ folder, socket, method, path: `${prefix}${path}`, body: body === undefined ? undefined : JSON.stringify(body), signal }))
        if (status >= 300) throw VmmRefused(name, call, reasonIn(text, status))
        return text === '' ? undefined : parse(text, name, call)
      } catch (error) {
        if (signal.aborted) throw VmmSilent.from(error, name, call, timeoutMs)
        if (VmmRefused.is(error)) throw error
        throw VmmUnreachable.from(error, name, error instanceof Error ? error.message : String(error))
      }
    }
  }
}

/** Whether the error is that of a VMM that has just been started and does not listen yet. */
export function mayListenLater (error: unknown): boolean {
  return VmmUnreachable.is(error) && hasCode(error.cause, 'ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EAGAIN')
}

interface Exchange {
  readonly folder: string
  readonly socket: string
  readonly method: RestMethod
  readonly path: string
  readonly body: string | undefined
  readonly signal: AbortSignal
}

async function exchange ({ folder, socket, method, path, body, signal }: Exchange): Promise<{ readonly status: number, readonly text: string }> {
  const connection = await connectUnix(folder, socket)
  try {
    return await new Promise((resolve, reject) => {
      const headers = { accept: 'application/json', connection: 'close', ...body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) } }
      // What ends without an answer need not end with an error: an answer that changes the protocol is none, and only the end tells of it.
      const closed = (): void => reject(new Error('it ended the connection without an answer'))
      const sent = request({ createConnection: () => connection, method, path, headers, signal }, (answer) => {
        sent.off('close', closed)
        const parts: Buffer[] = []
        let bytes = 0
        answer.on('data', (part: Buffer) => {
          bytes += part.length
          if (bytes > MOST_ANSWER_BYTES) sent.destroy(new Error(`its answer has more than ${MOST_ANSWER_BYTES} bytes`))
          else parts.push(part)
        })
        answer.once('end', () => { resolve({ status: answer.statusCode ?? 0, text: Buffer.concat(parts).toString('utf8') }) })
        answer.once('error', reject)
      })
      sent.once('error', reject)
      sent.once('close', closed)
      sent.end(body)
    })
  } finally {
    connection.destroy()
  }
}

function parse (text: string, name: string, call: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw VmmRefused.from(error, name, call, 'its answer is no JSON')
  }
}

/** The message of an error. Firecracker has it in a field, Cloud Hypervisor in a list of causes, and a proxy in between in plain text. */
function reasonIn (text: string, status: number): string {
  let said = text
  try {
    const parsed: unknown = JSON.parse(text)
    if (isRecord(parsed)) said = String(parsed['fault_message'] ?? parsed['error'] ?? text)
    else if (Array.isArray(parsed)) said = parsed.map(String).join(': ')
  } catch {
    // not JSON: the text as it is
  }
  return said === '' ? `status ${status}` : said.slice(0, MOST_REASON_CHARACTERS)
}
