// Bytes become lines of bounded length, whatever the bytes are.
import t from 'tap'
import { LineSplitter, MAX_LINE_BYTES } from '../../../../plugins/instances/logs/lines.ts'

const splitter = () => new LineSplitter({ trimCarriageReturn: false })

t.test('lines come out when they are whole, wherever blocks are cut', async (t) => {
  const text = 'one\n\ntwö\nthree'
  const bytes = Buffer.from(text)
  for (let size = 1; size <= bytes.length; size++) {
    const lines = splitter()
    const out: string[] = []
    for (let at = 0; at < bytes.length; at += size) out.push(...lines.push(bytes.subarray(at, at + size)))
    t.same(out, ['one', '', 'twö'], `blocks of ${size}`)
    t.same(lines.flush(), ['three'])
    t.same(lines.flush(), [])
  }
})

t.test('a long line is cut, between characters', async (t) => {
  const lines = splitter()
  const text = `x${'ö'.repeat(MAX_LINE_BYTES)}`
  const out = [...lines.push(Buffer.from(text)), ...lines.push(Buffer.from('\nnext\n'))]
  t.equal(out.length, 4)
  t.equal(out.slice(0, 3).join(''), text)
  t.ok(out.every((line) => Buffer.byteLength(line) <= MAX_LINE_BYTES && !line.includes('\ufffd')))
  t.equal(out[3], 'next')
})

t.test('a line of exactly the limit is one line', async (t) => {
  t.same(splitter().push(Buffer.from(`${'y'.repeat(MAX_LINE_BYTES)}\n`)).map((line) => line.length), [MAX_LINE_BYTES])
})

t.test('bytes that are no text are replaced', async (t) => {
  t.same(splitter().push(Buffer.from([0x61, 0xff, 0x62, 0x0a])), ['a\ufffdb'])
  t.equal(splitter().push(Buffer.alloc(MAX_LINE_BYTES + 10, 0xff)).length, 1)
})

t.test('carriage returns are kept, but for consoles', async (t) => {
  t.same(splitter().push(Buffer.from('a\r\n')), ['a\r'])
  const console = new LineSplitter({ trimCarriageReturn: true })
  t.same(console.push(Buffer.from('a\r\nb\rc\n\r')), ['a', 'b\rc'])
  t.same(console.flush(), [''])
})
