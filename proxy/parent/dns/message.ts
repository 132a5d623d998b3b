// DNS messages, as much of them as synthetic answers need: one question in, at most one address out (RFC 1035).

export interface Question {
  /** in lower case */
  readonly name: string
  readonly type: number
  readonly class: number
  /** offset of the end of the question in the message */
  readonly end: number
}

export const TYPE_A = 1
export const CLASS_IN = 1
export const RCODE = { ok: 0, malformed: 1, noSuchName: 3, notImplemented: 4, refused: 5 } as const

const HEADER_BYTES = 12
const MAX_NAME_BYTES = 255
const FLAG_RESPONSE = 0x8000
const FLAG_RECURSION_DESIRED = 0x0100
const FLAG_RECURSION_AVAILABLE = 0x0080
const OPCODE_MASK = 0x7800

/** Whether the message is a query. Others get no answer, so that nobody can make two servers answer each other. */
export function isQuery (message: Buffer): boolean {
  return message.length >= HEADER_BYTES && (message.readUInt16BE(2) & FLAG_RESPONSE) === 0
}

/** The one question of a query, or the response code when it cannot be read. */
export function readQuestion (message: Buffer): Question | number {
  if ((message.readUInt16BE(2) & OPCODE_MASK) !== 0) return RCODE.notImplemented
  if (message.readUInt16BE(4) !== 1) return RCODE.malformed
  const labels: string[] = []
  let at = HEADER_BYTES
  for (;;) {
    const length = message[at]
    // A question needs no compression pointers, and following them is a known way to attack parsers.
    if (length === undefined || length > 63 || at - HEADER_BYTES > MAX_NAME_BYTES) return RCODE.malformed
    at++
    if (length === 0) break
    labels.push(message.toString('latin1', at, at + length).toLowerCase())
    at += length
  }
  if (at + 4 > message.length) return RCODE.malformed
  return { name: labels.join('.'), type: message.readUInt16BE(at), class: message.readUInt16BE(at + 2), end: at + 4 }
}

/** The answer to `query`: a response code, and with `address` one A record. */
export function writeAnswer (query: Buffer, question: Question | undefined, rcode: number, address?: string, ttlSeconds = 0): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  header.writeUInt16BE(query.readUInt16BE(0), 0)
  const asked = query.readUInt16BE(2) & (OPCODE_MASK | FLAG_RECURSION_DESIRED)
  header.writeUInt16BE(FLAG_RESPONSE | asked | FLAG_RECURSION_AVAILABLE | rcode, 2)
  header.writeUInt16BE(question === undefined ? 0 : 1, 4)
  header.writeUInt16BE(address === undefined ? 0 : 1, 6)
  const parts: Buffer[] = [header]
  if (question !== undefined) parts.push(query.subarray(HEADER_BYTES, question.end))
  if (address !== undefined) parts.push(record(address, ttlSeconds))
  return Buffer.concat(parts)
}

function record (address: string, ttlSeconds: number): Buffer {
  const bytes = Buffer.alloc(16)
  // A pointer to the name of the question, which begins right behind the header.
  bytes.writeUInt16BE(0xc000 | HEADER_BYTES, 0)
  bytes.writeUInt16BE(TYPE_A, 2)
  bytes.writeUInt16BE(CLASS_IN, 4)
  bytes.writeUInt32BE(ttlSeconds, 6)
  bytes.writeUInt16BE(4, 10)
  for (const [index, part] of address.split('.').entries()) bytes[12 + index] = Number(part)
  return bytes
}
