// The header of an origin's answer, and where the answer ends by it (RFC 9112, 6.3).
import { BadAnswer } from '../../gate/bad-answer.ts'
import { readFields } from './fields.ts'

export interface AnswerHead {
  readonly status: number
  readonly reason: string
  /** names and values in turn, in the origin's order and spelling */
  readonly raw: readonly string[]
  /** bytes of the body, or how its end is marked */
  readonly body: number | 'chunked' | 'close'
  /** whether the connection may carry another request afterwards */
  readonly persistent: boolean
  /** how long the origin says that it keeps an unused connection */
  readonly keptMs: number
}

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-9]\d\d)(?: ([\t\x20-\x7e\x80-\xff]*))?$/
const LENGTH = /^\d{1,15}$/
const KEPT_SECONDS = /\btimeout=(\d{1,6})\b/i

/** Parses the text before the empty line. `toHead`: the answer to a HEAD request has no body, whatever its header says. */
export function readAnswerHead (text: string, toHead: boolean): AnswerHead {
  const lines = text.split('\r\n')
  const status = STATUS_LINE.exec(lines[0] ?? '')
  if (status === null) throw new BadAnswer('the answer does not begin with a status line')
  const code = Number(status[2])
  const older = status[1] === '0'
  const raw = readFields(lines, 1)
  let length: number | undefined
  let chunked = false
  let connection = ''
  let keptMs = Number.POSITIVE_INFINITY
  for (let index = 0; index < raw.length; index += 2) {
    const value = raw[index + 1] ?? ''
    switch (raw[index]?.toLowerCase()) {
      case 'content-length':
        // Also when both lines say the same: a reader that takes only one line might end the body elsewhere.
        if (length !== undefined || !LENGTH.test(value)) throw new BadAnswer('Content-Length is not one number')
        length = Number(value)
        break
      case 'transfer-encoding':
        if (chunked || older || value.toLowerCase() !== 'chunked') throw new BadAnswer('Transfer-Encoding is not just chunked')
        chunked = true
        break
      // Node's parser obeys the second line, too. One word that ends the connection is enough, on whichever line.
      case 'connection':
      case 'proxy-connection': connection += connection === '' ? value.toLowerCase() : `,${value.toLowerCase()}`; break
      case 'keep-alive': keptMs = Number(KEPT_SECONDS.exec(value)?.[1] ?? Number.POSITIVE_INFINITY) * 1000; break
      default:
    }
  }
  if (chunked && length !== undefined) throw new BadAnswer('both Content-Length and Transfer-Encoding say where the body ends')
  const empty = toHead || code < 200 || code === 204 || code === 304
  const body = empty ? 0 : chunked ? 'chunked' : length ?? 'close'
  return { status: code, reason: status[3] ?? '', raw, body, persistent: body !== 'close' && persists(connection, older), keptMs }
}

function persists (connection: string, older: boolean): boolean {
  if (connection === '') return !older
  if (connection === 'keep-alive') return true
  const words = connection.split(',').map(word => word.trim())
  return !words.includes('close') && (!older || words.includes('keep-alive'))
}
