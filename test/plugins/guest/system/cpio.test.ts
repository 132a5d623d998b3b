// The cpio writer: what it writes is read back by an independent reader, and is the same each time.
import t from 'tap'
import { cpioArchive, type CpioEntry } from '../../../../plugins/guest/system/cpio.ts'
import { readCpio } from '../helpers/cpio-reader.ts'

const ENTRIES: readonly CpioEntry[] = [
  { path: 'dev', kind: 'dir', mode: 0o755 },
  { path: 'dev/console', kind: 'device', mode: 0o600, major: 5, minor: 1 },
  ...[0, 1, 2, 3, 4, 5, 4096].map((size): CpioEntry => ({ path: `file-${'x'.repeat(size % 7)}${size}`, kind: 'file', mode: 0o644, content: Buffer.alloc(size, size) })),
  { path: 'init', kind: 'file', mode: 0o755, content: Buffer.from('#!') }
]

t.test('every entry comes back, at each alignment of name and content', async (t) => {
  t.same(readCpio(cpioArchive(ENTRIES)), [
    { path: 'dev', mode: 0o040755, content: Buffer.alloc(0), device: [0, 0] },
    { path: 'dev/console', mode: 0o020600, content: Buffer.alloc(0), device: [5, 1] },
    ...[0, 1, 2, 3, 4, 5, 4096].map((size) => ({ path: `file-${'x'.repeat(size % 7)}${size}`, mode: 0o100644, content: Buffer.alloc(size, size), device: [0, 0] })),
    { path: 'init', mode: 0o100755, content: Buffer.from('#!'), device: [0, 0] }
  ])
})

t.test('the same entries give the same bytes', async (t) => {
  t.same(cpioArchive(ENTRIES), cpioArchive(ENTRIES))
})
