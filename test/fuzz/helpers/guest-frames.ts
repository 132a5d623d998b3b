// What a guest may say over the agent's stream, and what it may not.
import { field, frame, u32 } from '../../plugins/guest/helpers/scripted-guest.ts'
import type { Random } from '../fuzz.ts'

const TEXTS = ['started', 'exited', 'file', 'dir', 'symlink', 'other', 'running', 'waiting', 'exiting', '', 'a', '../b', '/c', 'a/b', 'x'.repeat(300), 'x'.repeat(5_000), 'a\0b', '\x1b[2J', '\ud800'] as const
const NUMBERS = [0, 1, 2, 64, 65, 128, 255, 256, 4095, 4096, 0o7777, 0o10000, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 2 ** 53, 2n ** 63n, 2n ** 64n - 1n] as const
/** tags of the protocol that a guest's words have */
const TAGS = [1, 2, 3, 12, 13, 18, 20, 21, 22, 23, 24, 25, 26, 27, 30, 31, 32, 33, 34, 35, 36, 37, 38] as const
const CREDITS = [0, 1, 65_536, 0x7fff_ffff, 0xffff_ffff] as const

function value (random: Random): string | number | bigint | Buffer {
  const way = random.below(5)
  if (way < 2) return random.pick(TEXTS)
  return way < 4 ? random.pick(NUMBERS) : Buffer.alloc(random.below(20), random.below(256))
}

function fields (random: Random): Buffer {
  return Buffer.concat(random.many(5, () => field(random.once(15) ? random.below(256) : random.pick(TAGS), value(random))))
}

/** One entry of `get`, often a right one. */
function entry (random: Random): Buffer {
  const size = random.pick([0, 1, 10, 70_000, 2 ** 40])
  const right = [field(20, random.pick(['', 'a', 'a/b', '..', '/', 'a//b', './a'])), field(26, random.pick(['file', 'dir', 'symlink', 'other', 'no'])), field(25, size), field(27, '../x')]
  const payload = random.once(4) ? fields(random) : Buffer.concat(right.filter(() => !random.once(8)))
  const content = Buffer.alloc(Math.min(size, random.below(400)))
  return Buffer.concat([u32(random.once(10) ? random.pick([0, 1, 65_537, 0xffff_ffff]) : payload.length), payload, content])
}

/** A result that some kind of request may have. */
function result (random: Random): Buffer {
  const way = random.below(6)
  if (way === 0) return Buffer.alloc(0)
  if (way === 1) return field(12, random.pick([0, 1, 127, 255, 256]))
  if (way === 2) return Buffer.concat([field(30, random.pick(TEXTS)), field(31, random.pick(NUMBERS))])
  if (way === 3) return Buffer.concat([field(26, 'file'), field(25, 5), field(21, random.pick([0o644, 0o10000]))])
  return way === 4 ? field(33, random.pick(NUMBERS)) : fields(random)
}

/** One frame for a channel. */
export function guestFrame (random: Random, channel: number): Buffer {
  const way = random.below(16)
  const stream = random.pick([1, 1, 1, 2, 0, 3])
  if (way < 3) return frame(3, channel, stream, entry(random))
  if (way < 5) return frame(3, channel, stream, Buffer.alloc(random.pick([0, 0, 1, 5, 300, 65_536])))
  if (way < 7) return frame(4, channel, stream)
  if (way === 7) return frame(5, channel, 0, u32(random.pick(CREDITS)))
  if (way < 11) return frame(7, channel, 0, result(random))
  if (way < 13) return frame(8, 0, 0, Buffer.concat([field(1, random.pick(TEXTS)), ...random.once(2) ? [field(12, random.pick(NUMBERS))] : []]))
  if (way === 13) return frame(0, 0, 0)
  if (way === 14) return frame(random.below(12), random.pick([0, channel, 0xffff_ffff]), random.below(256), fields(random), random.pick([0, 1, 65_536, 65_537, 0xffff_ffff]))
  return frame(1, 0, 0, fields(random))
}

/** A HELLO of a guest in one phase or the other, sometimes with faults. */
export function guestHello (random: Random): Buffer {
  const right = [field(2, 1), field(3, random.pick(['waiting', 'running', 'asleep', 'exiting', 'starting', 'no'])), field(35, '6.1'), field(38, 'boot'), field(36, 2 ** 28), field(34, 1), field(18, 1), field(12, 3)]
  return frame(1, 0, 0, random.once(8) ? fields(random) : Buffer.concat(random.once(8) ? right.filter(() => !random.once(5)) : right))
}
