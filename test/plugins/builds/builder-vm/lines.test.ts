// The output of a build as lines.
import t from 'tap'
import { createLines } from '../../../../plugins/builds/builder-vm/lines.ts'
import { limitMs, msOf } from '../../../helpers/processor-time.ts'

function linesOf (...chunks: readonly (string | Buffer)[]): string[] {
  const found: string[] = []
  const lines = createLines((line) => found.push(line))
  for (const chunk of chunks) lines.push(Buffer.from(chunk))
  lines.end()
  return found
}

t.test('lines are put together from pieces, and the last one needs no end', async (t) => {
  t.same(linesOf('one\ntw', 'o\n\nthr', 'ee'), ['one', 'two', '', 'three'])
})

t.test('a character that is cut in two is whole again', async (t) => {
  const text = Buffer.from('größe\n')
  t.same(linesOf(text.subarray(0, 3), text.subarray(3)), ['größe'])
})

t.test('of a line that was written anew from its start, the last writing counts', async (t) => {
  t.same(linesOf('10%\r50%\r100%\r\nnext\r\n'), ['100%', 'next'])
})

t.test('what would move a cursor, colour, or set a title is taken out', async (t) => {
  t.same(linesOf('\x1b[31mred\x1b[0m \x1b[2J\x1b[1;1Hhome \x1b]0;title\x07bell\x07 \x1b]8;;http://x\x1b\\link\x1b(B \x9b31m\u2028tab\there\n'), ['red home bell link 31mtab\there'])
})

t.test('an escape sequence that does not end takes nothing but itself', async (t) => {
  t.same(linesOf('\x1b[31\nnext\n', '\x1b'), ['31', 'next', ''])
})

t.test('a line without end is given away in pieces of bounded length', async (t) => {
  const found = linesOf(...Array.from({ length: 20 }, () => 'x'.repeat(10_000)), '\nnext\n')
  t.equal(found.slice(0, -1).join(''), 'x'.repeat(200_000))
  t.ok(found.every((line) => line.length <= 65_536))
  t.equal(found.at(-1), 'next')
})

t.test('a long line that comes at once is given away in pieces, too', async (t) => {
  const found = linesOf(`${'y'.repeat(150_000)}\n`)
  t.same(found.map((line) => line.length), [65_536, 65_536, 18_928])
})

t.test('no output keeps the server from others, however it is made', async (t) => {
  const size = 2 ** 18
  const limit = limitMs()
  for (const [name, text] of Object.entries({ 'carriage returns': '\r', 'carriage returns before text': '\r\r\r\r\rx', escapes: '\x1b', 'sequences without end': '\x1b[', 'parameters without end': '\x1b[0', 'titles without end': '\x1b]', blanks: ' ', newlines: '\n' })) {
    const took = msOf(() => { linesOf(text.repeat(size / text.length)) })
    t.ok(took < limit, `${name}: ${took} ms of ${limit}`)
  }
  const took = msOf(() => { linesOf(`\x1b[${'0'.repeat(size)}`, ...Array.from({ length: 60_000 }, () => 'x')) })
  t.ok(took < limit, `a long line in pieces of one byte: ${took} ms of ${limit}`)
})
