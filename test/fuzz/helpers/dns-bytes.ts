// DNS messages as hostile guests ask and hostile servers answer: the right ones, and such that break each field.
import type { Random } from '../fuzz.ts'

export const HEADER_BYTES = 12
const TYPES = [1, 1, 1, 28, 5, 2, 6, 12, 15, 16, 33, 41, 43, 46, 64, 65, 99, 249, 250, 251, 252, 253, 255, 256, 0, 65_535] as const
const CLASSES = [1, 1, 1, 1, 3, 4, 254, 255, 0, 65_535] as const
const LABELS = ['a', 'test', 'com', 'localhost', 'xn--', '', 'x'.repeat(63), 'x'.repeat(64), 'x'.repeat(191), '\0', '.', 'a.b', '*', '_tcp', 'local', 'arpa', 'in-addr', '\xff\xfe', '%s%n', 'AbC'] as const

const two = (value: number): Buffer => Buffer.from([value >> 8 & 255, value & 255])

/** A name as it stands in a message. */
export function nameBytes (name: string): Buffer {
  return Buffer.concat([...name.split('.').filter(label => label !== '').flatMap(label => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]), Buffer.from([0])])
}

function oddName (random: Random): Buffer {
  const labels = random.many(random.once(8) ? 130 : 5, () => random.pick(LABELS)).flatMap(label => [Buffer.from([label.length & 255]), Buffer.from(label, 'latin1')])
  const end = random.pick([Buffer.from([0]), Buffer.from([0]), Buffer.from([0]), two(0xc000 | random.pick([0, 2, HEADER_BYTES, HEADER_BYTES + 1, random.below(600), 0x3fff])), Buffer.from([0x40]), Buffer.from([0x80, 1]), Buffer.alloc(0)])
  return Buffer.concat([...labels, end])
}

function options (random: Random): Buffer {
  const each = random.many(6, () => {
    const data = Buffer.alloc(random.pick([0, 1, 4, 8, 24, 40, 500]), random.below(256))
    return Buffer.concat([two(random.pick([3, 5, 8, 9, 10, 12, 15, 65_001, 65_073, 65_535])), two(random.once(5) ? random.below(65_536) : data.length), data])
  })
  const data = Buffer.concat(each)
  return Buffer.concat([random.once(6) ? oddName(random) : Buffer.from([0]), two(41), two(random.pick([0, 511, 512, 1_232, 4_096, 65_535])), Buffer.from([random.pick([0, 255]), random.pick([0, 1, 255]), random.pick([0, 0x80]), 0]), two(random.once(6) ? random.below(65_536) : data.length), data])
}

/** What a guest asks; one in a few is as it should be. */
export function queryBytes (random: Random, name: string): Buffer {
  if (random.once(12)) return Buffer.from(random.many(600, () => random.below(256)))
  const isPlain = random.once(3)
  const questions = Array.from({ length: isPlain || !random.once(8) ? 1 : random.below(200) }, () => Buffer.concat([random.once(3) ? oddName(random) : nameBytes(name), two(random.pick(TYPES)), two(random.pick(CLASSES))]))
  const flags = isPlain ? 0x0100 : random.pick([0x0100, 0x0100, 0x0120, 0x0000, 0x8180, 0x2800, 0x7900, 0x0300, random.below(65_536)])
  const count = isPlain || !random.once(6) ? questions.length : random.pick([0, 2, 255, 65_535])
  const extra = random.once(2) ? options(random) : Buffer.alloc(0)
  const counts = [count, ...isPlain || !random.once(6) ? [0, 0] : [random.below(3), random.below(65_536)], extra.length > 0 ? random.pick([1, 1, 1, 2, 0]) : 0]
  const message = Buffer.concat([two(random.below(65_536)), two(flags), ...counts.map(two), ...questions, extra])
  return random.mutate(message, isPlain ? 0 : 2)
}

function recordData (random: Random, type: number): Buffer {
  if (random.once(6)) return Buffer.alloc(random.pick([0, 1, 3, 5, 255, 2_000]), random.below(256))
  if (type === 1) return Buffer.from(random.pick([[203, 0, 113, 9], [127, 0, 0, 1], [169, 254, 169, 254], [0, 0, 0, 0], [10, 100, 0, 1]]))
  if (type === 28) return Buffer.from(random.pick(['00000000000000000000000000000001', '00000000000000000000ffff7f000001', '20010db8000000000000000000000001']), 'hex')
  if (type === 16) return Buffer.concat(random.many(4, () => { const length = random.pick([0, 1, 255]); return Buffer.concat([Buffer.from([random.once(5) ? 255 : length]), Buffer.alloc(length, 37)]) }))
  if (type === 6) return Buffer.concat([oddName(random), oddName(random), Buffer.alloc(random.pick([20, 20, 4]), random.below(256))])
  if (type === 15 || type === 33 || type === 64 || type === 65) return Buffer.concat([Buffer.alloc(type === 33 ? 6 : 2, random.below(4)), oddName(random)])
  return oddName(random)
}

function record (random: Random, owner: Buffer, type = random.pick(TYPES)): Buffer {
  const data = recordData(random, type)
  const ttl = Buffer.alloc(4)
  ttl.writeUInt32BE(random.pick([0, 1, 60, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1]))
  return Buffer.concat([owner, two(type), two(random.once(10) ? random.pick(CLASSES) : 1), ttl, two(random.once(8) ? random.below(65_536) : data.length), data])
}

const addressRecord = (owner: Buffer, address: readonly number[]): Buffer => Buffer.concat([owner, two(1), two(1), Buffer.from([0, 0, 0, 60]), two(4), Buffer.from(address)])

/** Where the first question of a message ends; `undefined` when it has none that can be read. */
export function questionEnd (message: Buffer): number | undefined {
  let at = HEADER_BYTES
  for (let length = message[at]; length !== 0; length = message[at]) {
    if (length === undefined || length > 63) return undefined
    at += length + 1
  }
  return at + 5 <= message.length ? at + 5 : undefined
}

/** The right answer: one address. Other types than A have none. */
export function rightAnswer (query: Buffer, address: readonly number[]): Buffer {
  const end = questionEnd(query)
  if (end === undefined) return Buffer.alloc(0)
  const isAddress = query.readUInt16BE(end - 4) === 1
  return Buffer.concat([query.subarray(0, 2), two(0x8180), two(1), two(isAddress ? 1 : 0), two(0), two(0), query.subarray(HEADER_BYTES, end), isAddress ? addressRecord(two(0xc000 | HEADER_BYTES), address) : Buffer.alloc(0)])
}

/**
 * What a hostile server answers, in one datagram or several; none is silence. An address of `victim` is slipped in where it answers nothing: behind no chain of names, which is
 * an upstream server's to make.
 */
export function answersBytes (random: Random, query: Buffer, victim: { readonly name: string, readonly address: readonly number[] }): Buffer[] {
  if (random.once(15)) return []
  if (random.once(15)) return [Buffer.from(random.many(1_200, () => random.below(256)))]
  const end = questionEnd(query)
  if (end === undefined) return [random.mutate(query, 3)]
  const question = query.subarray(HEADER_BYTES, end)
  const own = two(0xc000 | HEADER_BYTES)
  const slips = random.once(3)
  const records = slips
    ? Array.from({ length: 1 + random.below(20) }, () => addressRecord(nameBytes(victim.name), victim.address))
    : random.many(random.once(6) ? 300 : 6, () => record(random, random.once(3) ? oddName(random) : own))
  const sections = slips ? random.pick([[0, records.length, 0], [0, 0, records.length]]) : random.pick([[records.length, 0, 0], [0, records.length, 0], [records.length, 0, 0], [1, random.below(65_536), random.below(65_536)]])
  const id = random.once(8) ? two(random.below(65_536)) : query.subarray(0, 2)
  const flags = random.pick([0x8180, 0x8180, 0x8180, 0x8380, 0x8580, 0x8183, 0x8182, 0x8185, 0x81a0, 0x0100, random.below(65_536)])
  const asked = random.once(6) ? Buffer.concat([oddName(random), question.subarray(-4)]) : random.once(8) ? Buffer.alloc(0) : question
  const extra = !slips && random.once(3) ? options(random) : Buffer.alloc(0)
  const message = Buffer.concat([id, two(flags), two(random.once(10) ? random.below(4) : 1), ...sections.map(two), asked, ...records, extra])
  // Changed bytes could make any chain of names.
  const sent = slips ? message : random.mutate(message, random.once(2) ? 3 : 0)
  return random.once(5) ? [sent, sent, rightAnswer(query, [203, 0, 113, 8])] : [sent]
}
