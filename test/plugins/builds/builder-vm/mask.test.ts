// Secrets in the output of a build.
import t from 'tap'
import { createMask } from '../../../../plugins/builds/builder-vm/mask.ts'
import { limitMs, msOf } from '../../../helpers/processor-time.ts'

function masked (secrets: readonly string[], chunks: readonly string[]): string {
  const mask = createMask(secrets.map((secret) => Buffer.from(secret)))
  const out = [...chunks.map((chunk) => mask.push(Buffer.from(chunk))), mask.end()]
  return Buffer.concat(out).toString()
}

t.test('a secret is masked wherever the output is cut', async (t) => {
  const text = 'token=s3cr3t-value; again s3cr3t-value\nand the end s3cr3t-value'
  for (let size = 1; size <= text.length; size++) {
    const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    t.equal(masked(['s3cr3t-value'], chunks), 'token=***; again ***\nand the end ***', `pieces of ${size}`)
  }
})

t.test('each line of a secret is masked, without the spaces around it and whatever ends it', async (t) => {
  const secret = 'first line of a key\r\n  second line of a key\n\n'
  t.equal(masked([secret], ['> first line of a key\n>second line of a key\n']), '> ***\n>***\n')
})

t.test('the longer one of two secrets that begin alike leaves no rest, also when it comes in pieces', async (t) => {
  t.equal(masked(['pass', 'password'], ['the pass', 'word and the pass', ' and a passport']), 'the *** and the *** and a ***port')
})

t.test('a secret inside of another leaves no rest', async (t) => {
  t.equal(masked(['cdef', 'abcdefgh'], ['abcd', 'efgh', ' cdef']), '*** ***')
})

t.test('what only begins like a secret comes out, at the latest at the end', async (t) => {
  t.equal(masked(['abcdef'], ['xabc', 'xabcde']), 'xabcxabcde')
})

t.test('what begins like a secret is not held back beyond its line', async (t) => {
  const mask = createMask([Buffer.from('abcdef')])
  t.equal(mask.push(Buffer.from('abc\n')).toString(), 'abc\n')
})

t.test('secrets that overlap leave no rest, and those that follow each other are two', async (t) => {
  const text = 'xabcdefgh abcdabcd efghabcdef'
  for (let size = 1; size <= text.length; size++) {
    const chunks = text.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
    t.equal(masked(['abcd', 'cdefgh', 'defg'], chunks), 'x*** ****** efgh***ef', `pieces of ${size}`)
  }
})

t.test('no output keeps the server from others, whatever it has in common with however many secrets', async (t) => {
  const size = 2 ** 18
  const limit = limitMs()
  const long = 'a'.repeat(2 ** 15)
  const many = Array.from({ length: 5000 }, (_, index) => `aaaa${index}`).join('\n')
  const secrets: Record<string, string[]> = { 'a short one and the beginning of a long one': ['aaaa', `${long}b`], 'the beginnings of many': [many], 'many that are there': ['aaaa', many], all: [many, `${long}b`, 'aaaaa', 'aaaa'] }
  for (const [name, values] of Object.entries(secrets)) {
    const mask = createMask(values.map((value) => Buffer.from(value)))
    const took = msOf(() => { mask.push(Buffer.from('a'.repeat(size))) })
    t.ok(took < limit, `${name}: ${took} ms of ${limit}`)
  }
})

t.test('a line of a secret that is too short to be one is left alone', async (t) => {
  t.equal(masked(['abc\n', 'x'], ['abc x abcd']), 'abc x abcd')
})

t.test('a secret of bytes that are no text is masked', async (t) => {
  const secret = Buffer.from([0xff, 0xfe, 0x00, 0x80, 0x81])
  const mask = createMask([secret])
  const out = Buffer.concat([mask.push(Buffer.concat([Buffer.from('a'), secret.subarray(0, 2)])), mask.push(Buffer.concat([secret.subarray(2), Buffer.from('b')])), mask.end()])
  t.equal(out.toString('latin1'), 'a***b')
})
