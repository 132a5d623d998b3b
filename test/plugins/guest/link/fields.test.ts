// Fields: what is written can be read, and each way to get them wrong is a violation.
import t from 'tap'
import { FieldReader, FieldWriter, Tag } from '../../../../plugins/guest/link/fields.ts'
import { decodeExecResult, decodeFacts, decodeHello } from '../../../../plugins/guest/link/messages.ts'
import { field } from '../helpers/scripted-guest.ts'

t.test('values come back as they were written', async (t) => {
  const reader = new FieldReader(new FieldWriter().add(Tag.path, 'ä/b').add(Tag.mode, 0o755).add(Tag.follow, true).add(Tag.mtime, -5).add(Tag.cwd, undefined).finish())
  t.equal(reader.text(Tag.path), 'ä/b')
  t.equal(reader.number(Tag.mode), 0o755)
  t.equal(reader.flag(Tag.follow), true)
  t.equal(reader.seconds(Tag.mtime), -5)
  t.equal(reader.has(Tag.cwd), false)
  t.equal(reader.number(Tag.uid), undefined)
})

t.test('bytes on the wire are tag, length, value', async (t) => {
  t.same(new FieldWriter().add(Tag.kind, 'run').add(Tag.rows, 258).finish(), Buffer.from('0103000000' + '72756e' + '0908000000' + '0201000000000000', 'hex'))
})

t.test('what cannot be is a violation', async (t) => {
  const cases: ReadonlyArray<readonly [string, () => unknown]> = [
    ['a cut header', () => new FieldReader(Buffer.from([1, 0, 0]))],
    ['a length beyond the message', () => new FieldReader(Buffer.from([1, 5, 0, 0, 0, 65]))],
    ['a length of 4 GiB', () => new FieldReader(Buffer.from([1, 255, 255, 255, 255]))],
    ['a field twice', () => new FieldReader(Buffer.concat([field(20, 'a'), field(20, 'b')]))],
    ['endless fields', () => new FieldReader(Buffer.concat(Array.from({ length: 65 }, (_, index) => field(index + 60, ''))))],
    ['a number of 4 bytes', () => new FieldReader(field(21, Buffer.alloc(4))).number(Tag.mode)],
    ['a number beyond 2^53', () => new FieldReader(field(25, 2n ** 53n)).number(Tag.size)],
    ['a flag of 2', () => new FieldReader(field(28, 2)).flag(Tag.follow)],
    ['a NUL in a text', () => new FieldReader(field(20, 'a\0b')).text(Tag.path)],
    ['a text of 4097 bytes', () => new FieldReader(field(20, 'a'.repeat(4097))).text(Tag.path)],
    ['an unknown phase', () => decodeHello(field(3, 'dancing'))],
    ['a HELLO without facts', () => decodeHello(Buffer.alloc(0))],
    ['an exit code of 256', () => decodeExecResult(new FieldReader(field(12, 256)))],
    ['no exit code', () => decodeExecResult(new FieldReader(Buffer.alloc(0)))],
    ['a signal of 65', () => decodeExecResult(new FieldReader(Buffer.concat([field(12, 1), field(13, 65)])))],
    ['a mode of 16 bits', () => decodeFacts(new FieldReader(field(21, 0o100644)))],
    ['an unknown file type', () => decodeFacts(new FieldReader(field(26, 'door')))]
  ]
  for (const [name, act] of cases) t.throws(act, { name: 'ProtocolViolation' }, name)
})

t.test('names that are not UTF-8 and absurd times are taken, since honest images have them', async (t) => {
  t.equal(new FieldReader(field(20, Buffer.from([0x61, 0xe4]))).text(Tag.path), 'a\ufffd')
  t.equal(new FieldReader(field(24, 2n ** 63n - 1n)).seconds(Tag.mtime), 0)
})

t.test('errors lose what could rewrite a terminal or a log line', async (t) => {
  t.equal(new FieldReader(field(30, 'no\u001b[2J such\r\nfile\u0085')).prose(Tag.error), 'no [2J such file')
})
