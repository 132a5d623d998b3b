// Bytes that are nearly HTTP/1.1.
import { OF_THE_CONNECTION, SINGLE } from '../../proxy/helpers/hostile-answers.ts'
import type { Random } from '../fuzz.ts'

const VALUES = ['a', 'b', '0', '2', '1, 2', '', 'close', 'keep-alive', 'chunked', 'gzip', 'x'.repeat(300), ' a ', '\t', '\xe4', 'a;b="c"', 'timeout=5', '100-continue', 'websocket', 'trailers']
const NAMES = ['X', 'x-y', '__proto__', 'Set-Cookie', ...SINGLE, ...OF_THE_CONNECTION]

export function fields (random: Random): string {
  return random.many(5, () => `${random.pick(NAMES)}: ${random.pick(VALUES)}\r\n`).join('')
}

function chunks (random: Random): string {
  const pieces = random.many(4, () => { const text = 'x'.repeat(1 + random.below(30)); return `${text.length.toString(16)}${random.once(5) ? ';a=b' : ''}\r\n${text}\r\n` }).join('')
  return `Transfer-Encoding: chunked\r\n\r\n${pieces}0\r\n${random.once(3) ? fields(random) : ''}\r\n`
}

/** What frames a message, and its body. */
export function framed (random: Random): string {
  const body = 'ok'.repeat(random.below(20))
  const way = random.below(6)
  if (way === 0) return `\r\n${body}`
  if (way === 1) return `Trailer: X\r\n${chunks(random)}`
  if (way < 4) return chunks(random)
  return `Content-Length: ${body.length}\r\n\r\n${body}`
}

/** An answer, often with faults. */
export function answerBytes (random: Random): Buffer {
  const early = random.once(6) ? `HTTP/1.1 ${random.pick(['100', '103', '102', '101'])} Early\r\n${fields(random)}\r\n` : ''
  const status = random.once(3) ? String(100 + random.below(900)) : random.pick(['200', '204', '205', '206', '304', '404', '500'])
  const text = `${early}HTTP/1.${random.once(8) ? 0 : 1} ${status}${random.once(9) ? '' : ' Reason'}\r\n${fields(random)}${framed(random)}`
  return random.mutate(Buffer.from(text, 'latin1'), random.once(2) ? 0 : 3)
}

/** A request, often with faults. */
export function requestBytes (random: Random, host: string): Buffer {
  const method = random.pick(['GET', 'POST', 'HEAD', 'PUT', 'OPTIONS', 'DELETE', 'TRACE', 'CONNECT'])
  const text = `${method} ${random.pick(['/', '*', '/a?b', '//', 'http://x/'])} HTTP/1.${random.once(8) ? 0 : 1}\r\nHost: ${host}\r\n${fields(random)}${framed(random)}`
  return random.mutate(Buffer.from(text, 'latin1'), random.once(2) ? 0 : 3)
}
