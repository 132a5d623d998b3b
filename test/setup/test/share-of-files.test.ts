// The long tier in shares, of which a commit has one.
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import { readDurations } from '../../../setup/test/durations.ts'
import { findTests } from '../../../setup/test/files.ts'
import { parseOptions } from '../../../setup/test/options.ts'
import { partOfCommit } from '../../../setup/test/share-of-commit.ts'
import { shareOfFiles, SHARES } from '../../../setup/test/share-of-files.ts'
import { tierOf } from '../../../setup/test/tiers.ts'

const FILES = ['a', 'b', 'c', 'd', 'e'].map(source => ({ source }))
const DURATIONS = { a: 90, b: 50, c: 40, d: 30, e: 8 }
const names = (files: ReadonlyArray<{ source: string }>): string[] => files.map(({ source }) => source).sort()
const all = Array.from({ length: SHARES }, (_unused, share) => share)

t.test('each file is in one share, and all take about the same time, in whatever order the files come', async (t) => {
  for (const files of [FILES, FILES.toReversed()]) {
    const shares = all.map(share => shareOfFiles(files, DURATIONS, share))
    t.same(shares.map(({ now }) => names(now)), [['a'], ['b'], ['c'], ['d', 'e']])
    for (const { now, left } of shares) t.same(names([...now, ...left]), names(FILES))
  }
})

t.test('of the tests that are there, no share takes a tenth more than another, and what each commit needs is in all of them', async (t) => {
  const durations = await readDurations(`${packageRoot}/setup/test/durations.json`)
  const long = (await findTests(packageRoot, 'dist')).filter(({ source }) => tierOf(source) === 'long')
  const shares = all.map(share => names(shareOfFiles(long, durations, share).now))
  const seconds = shares.map(share => share.reduce((sum, source) => sum + (durations[source] ?? 0), 0))
  t.ok(Math.max(...seconds) < 1.1 * Math.min(...seconds), seconds.join(' s, '))
  const needed = ['test/integration/devices.long.test.ts', 'test/integration/drivers/qemu-under-kvm.long.test.ts', 'test/systems/trixie.long.test.ts']
  for (const share of shares) t.same(share.filter(source => shares.filter(each => each.includes(source)).length > 1), needed)
  t.equal(new Set(shares.flat()).size, long.length, 'nothing is in none')
})

t.test('which share a commit has says nothing of its parts of tables', async (t) => {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: packageRoot, encoding: 'utf8' })
  const [tables, files] = status === 0 ? [stdout.slice(0, 8), stdout.slice(8, 16)] : ['0', '0']
  t.equal(partOfCommit(SHARES), parseInt(tables, 16) % SHARES)
  t.equal(partOfCommit(SHARES, 'files'), parseInt(files, 16) % SHARES)
})

t.test('a share of anything but the long tier is a mistake', async (t) => {
  t.equal(parseOptions(['--long', '--share']).share, true)
  for (const args of [['--share'], ['--share', 'word'], ['--long', '--share', 'word']]) t.throws(() => parseOptions(args), /^--share: /)
})
