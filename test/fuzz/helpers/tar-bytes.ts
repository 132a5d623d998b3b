// Tar archives with faults: names that lead elsewhere, headers that lie, records of pax and GNU in any order.
import { end, entry, longName, pax } from '../../helpers/raw-tar.ts'
import type { Random } from '../fuzz.ts'

const NAMES = ['a', 'b', 'a/b', 'a/b/c', 'd/', './', '.', '', '/', '/tmp/x', '..', '../x', 'a/../b', 'a/../../x', 'a//b', './a', 'lost+found', 'lost+found/x', 'a/.', 'x'.repeat(99), 'd/'.repeat(45), 'ä', '\xff', '.wh.a', '.wh..wh..opq', 'a\\b', '-rf', '__proto__', 'a\nb'] as const
const TYPES = ['0', '0', '0', '5', '5', '2', '1', '\0', '7', '3', '4', '6', 'S', 'L', 'K', 'x', 'g', 'V', 'M', 'Z', ' '] as const
const SIZES = [0, 1, 511, 512, 513, 2 ** 20, 2 ** 33, 2 ** 53] as const
const KEYS = ['path', 'linkpath', 'size', 'mtime', 'uid', 'gid', 'GNU.sparse.major', 'GNU.sparse.name', 'SCHILY.xattr.user.a', 'comment', '', '='] as const
const VALUES = ['', '0', '1', '-1', '511', '99999999999', '1e3', '0x10', '1.5', ' 1', '../x', '/etc/passwd', 'a', 'a/b', 'x'.repeat(300), '9'.repeat(20), 'ä', 'a\0b'] as const

function record (random: Random): Buffer {
  const type = random.pick(TYPES)
  const lies = random.once(8) ? { sizeBytes: random.pick(SIZES) } : {}
  const raw = random.once(20) ? { rawSize: Buffer.from(random.many(12, () => random.below(256))) } : {}
  const owner = random.once(20) ? { rawUid: Buffer.from([0x80 | random.below(128), ...random.many(7, () => random.below(256))]) } : {}
  const content = type === '5' || type === '1' || type === '2' ? '' : random.pick(['', 'x', 'x'.repeat(600), '19 path=../outside\n', '6 =ab\n', Buffer.alloc(70_000)])
  return entry({ path: Buffer.from(random.pick(NAMES), 'latin1'), type, target: random.pick(NAMES), mode: random.pick([0, 0o644, 0o4755, 0o7777]), content: random.once(30) ? 'x' : content, ...lies, ...raw, ...owner })
}

function block (random: Random): Buffer {
  const way = random.below(8)
  const named = { path: random.pick(NAMES), type: random.pick(TYPES), target: random.pick(NAMES), content: random.pick(['', 'x']) }
  if (way === 0) return Buffer.concat([longName(random.pick(NAMES), { content: 'long', ...random.once(2) ? {} : { type: random.pick(TYPES) } })].flat())
  if (way < 3) return Buffer.concat([pax(Object.fromEntries(random.many(3, () => [random.pick(KEYS), random.pick(VALUES)])), random.once(4) ? undefined : named, random.once(3) ? 'g' : 'x')].flat())
  return record(random)
}

/** An archive; one in two is what it says it is. */
export function tarBytes (random: Random): Buffer {
  const blocks = random.many(random.once(20) ? 60 : 6, () => block(random))
  const whole = Buffer.concat([...blocks, ...random.once(10) ? [] : [end]])
  return random.once(2) ? whole : random.mutate(whole, 2)
}
