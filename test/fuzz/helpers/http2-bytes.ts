// Frames that are nearly HTTP/2.
import { DATA, END_STREAM, frame, GOAWAY, headers, RST_STREAM, SETTINGS, WINDOW_UPDATE, word } from '../../proxy/helpers/frames.ts'
import { OF_THE_CONNECTION, RESET_CODES, SINGLE } from '../../proxy/helpers/hostile-answers.ts'
import type { Random } from '../fuzz.ts'

type Line = readonly [string, string]

const NAMES = ['x', 'x', '__proto__', 'set-cookie', 'cookie', 'X', 'x y', ':x', ...SINGLE, ...OF_THE_CONNECTION]
const VALUES = ['a', 'b', '0', '2', '', 'trailers', 'x'.repeat(300), '\xe4', ' a', '\t', 'a\x00']

const fields = (random: Random): Line[] => random.many(4, () => [random.pick(NAMES), random.pick(VALUES)] as const)

function next (random: Random, stream: number, first: readonly Line[]): Buffer {
  const end = random.once(3) ? END_STREAM : 0
  const way = random.below(12)
  if (way < 3) return headers(stream, end, [...first, ...fields(random)])
  if (way < 5) return frame(DATA, end, stream, Buffer.from('ok'.repeat(random.below(30))))
  if (way < 7) return headers(stream, END_STREAM, fields(random))
  if (way === 7) return frame(RST_STREAM, 0, stream, word(random.pick(RESET_CODES)))
  if (way === 8) return frame(GOAWAY, 0, 0, Buffer.concat([word(random.pick([0, stream])), word(random.pick(RESET_CODES))]))
  if (way === 9) return frame(WINDOW_UPDATE, 0, random.pick([0, stream]), word(random.pick([0, 1, 0x7fffffff])))
  if (way === 10) return frame(SETTINGS, 0, 0, Buffer.concat([Buffer.from([0, 1 + random.below(8)]), word(random.pick([0, 1, 16_384, 0x7fffffff]))]))
  return frame(random.below(256), random.below(256), stream, Buffer.alloc(random.below(30)))
}

/** Frames of one stream; `first` are the pseudo-headers of its header. */
export function streamBytes (random: Random, stream: number, first: readonly Line[]): Buffer[] {
  const begin = headers(stream, random.once(5) ? END_STREAM : 0, [...first, ...fields(random)])
  const all = [random.once(10) ? Buffer.alloc(0) : begin, ...random.many(5, () => next(random, stream, first))]
  return all.map(bytes => random.once(15) ? random.mutate(bytes, 2) : bytes)
}
