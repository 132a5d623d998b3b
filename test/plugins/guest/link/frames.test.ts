// The frame codec: every rule of the header by table, and streams cut at random places.
import t from 'tap'
import { encodeCredit, encodeFrame, FrameParser, FrameType, type FrameSink } from '../../../../plugins/guest/link/frames.ts'
import { ProtocolViolation } from '../../../../plugins/guest/link/violation.ts'
import { frame, u32 } from '../helpers/scripted-guest.ts'

class Recorder implements FrameSink {
  readonly seen: string[] = []
  nop (): void { this.seen.push('nop') }
  eof (channel: number, stream: number): void { this.seen.push(`eof ${channel}/${stream}`) }
  credit (channel: number, stream: number, bytes: number): void { this.seen.push(`credit ${channel}/${stream} ${bytes}`) }
  message (type: number, channel: number, payload: Buffer): void { this.seen.push(`message ${type} ${channel} ${payload.toString('hex')}`) }
  data (channel: number, stream: number, piece: Buffer): void {
    const last = this.seen.at(-1)
    const start = `data ${channel}/${stream} `
    // pieces of one frame are joined, so that the result does not depend on where the stream was cut
    if (last?.startsWith(start) === true) this.seen[this.seen.length - 1] = last + piece.toString('hex')
    else this.seen.push(start + piece.toString('hex'))
  }
}

function parse (chunks: readonly Buffer[]): string[] {
  const recorder = new Recorder()
  const parser = new FrameParser(recorder)
  for (const chunk of chunks) parser.push(chunk)
  return recorder.seen
}

t.test('each frame that a guest may send reaches its sink', async (t) => {
  const cases: ReadonlyArray<readonly [string, Buffer, string]> = [
    ['NOP', frame(0, 0, 0), 'nop'],
    ['NOP on a channel', frame(0, 9, 0), 'nop'],
    ['HELLO', frame(1, 0, 0, Buffer.from('ab')), 'message 1 0 6162'],
    ['DATA', frame(3, 7, 2, Buffer.from('xyz')), 'data 7/2 78797a'],
    ['empty DATA', frame(3, 7, 1), 'data 7/1 '],
    ['EOF', frame(4, 7, 1), 'eof 7/1'],
    ['CREDIT', frame(5, 0xffff_ffff, 0, u32(0xffff_ffff)), 'credit 4294967295/0 4294967295'],
    ['RESULT', frame(7, 3, 0), 'message 7 3 '],
    ['EVENT', frame(8, 0, 0, Buffer.from('e')), 'message 8 0 65']
  ]
  for (const [name, bytes, expected] of cases) t.same(parse([bytes]), [expected], name)
})

t.test('each wrong header is a violation', async (t) => {
  const reserved = frame(0, 0, 0)
  reserved[11] = 1
  const cases: ReadonlyArray<readonly [string, Buffer, RegExp]> = [
    ['too long', frame(3, 1, 1, Buffer.alloc(0), 65_537), /frame of 65537 bytes/],
    ['longest number', frame(3, 1, 1, Buffer.alloc(0), 0xffff_ffff), /frame of 4294967295 bytes/],
    ['reserved bits', reserved, /reserved/],
    ['NOP with content', frame(0, 0, 0, Buffer.from('x')), /with content/],
    ['HELLO on a channel', frame(1, 1, 0), /on a channel/],
    ['EVENT on a channel', frame(8, 1, 0), /on a channel/],
    ['HELLO on a stream', frame(1, 0, 1), /on stream 1/],
    ['RESULT on the connection', frame(7, 0, 0), /connection itself/],
    ['RESULT on a stream', frame(7, 1, 3), /on stream 3/],
    ['DATA on the connection', frame(3, 0, 1), /connection itself/],
    ['DATA on the host\'s stream', frame(3, 1, 0), /on stream 0/],
    ['DATA on stream 3', frame(3, 1, 3), /on stream 3/],
    ['EOF with content', frame(4, 1, 1, Buffer.from('x')), /with content/],
    ['EOF on the host\'s stream', frame(4, 1, 0), /on stream 0/],
    ['CREDIT for the guest\'s stream', frame(5, 1, 1, u32(1)), /on stream 1/],
    ['CREDIT of 3 bytes', frame(5, 1, 0, Buffer.alloc(3)), /with 3 bytes/],
    ['OPEN', frame(2, 1, 0), /does not send/],
    ['CONTROL', frame(6, 1, 0), /does not send/],
    ['unknown type', frame(200, 1, 0), /does not send/]
  ]
  for (const [name, bytes, why] of cases) {
    t.throws(() => parse([bytes]), { name: 'ProtocolViolation', message: why }, name)
    t.throws(() => parse([...bytes].map((byte) => Buffer.from([byte]))), ProtocolViolation, `${name}, byte by byte`)
  }
})

t.test('a stream gives the same frames wherever it is cut', async (t) => {
  const whole = Buffer.concat(Array.from({ length: 200 }, (_, index) => {
    const payload = Buffer.alloc((index * 37) % 300, index)
    return [frame(3, 1 + index % 5, 1 + index % 2, payload), frame(7, index + 1, 0, payload), frame(0, 0, 0), frame(5, 4, 0, u32(index)), frame(4, 2, 1)]
  }).flat())
  const expected = parse([whole])
  for (let round = 0; round < 50; round++) {
    const chunks: Buffer[] = []
    for (let at = 0; at < whole.length;) {
      const end = at + 1 + Math.floor(Math.random() * (round < 25 ? 20 : 5000))
      chunks.push(whole.subarray(at, end))
      at = end
    }
    t.same(parse(chunks), expected, `round ${round}`)
  }
})

t.test('the host\'s frames are as the protocol says', async (t) => {
  t.same(encodeFrame(FrameType.open, 5, 0, Buffer.from('p')), frame(2, 5, 0, Buffer.from('p')))
  t.same(encodeCredit(5, 1, 70_000), frame(5, 5, 1, u32(70_000)))
  t.throws(() => encodeFrame(FrameType.open, 5, 0, Buffer.alloc(65_537)), RangeError)
})
