// The long tier in halves, of which a commit has one.
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import { readDurations } from '../../../setup/test/durations.ts'
import { findTests } from '../../../setup/test/files.ts'
import { halve } from '../../../setup/test/halves.ts'
import { parseOptions } from '../../../setup/test/options.ts'
import { partOfCommit } from '../../../setup/test/share-of-commit.ts'
import { tierOf } from '../../../setup/test/tiers.ts'

const file = (source: string): { source: string } => ({ source })
const FILES = ['a', 'b', 'c', 'd', 'e'].map(file)
const DURATIONS = { a: 90, b: 50, c: 40, d: 10, e: 8 }
const names = (files: ReadonlyArray<{ source: string }>): string[] => files.map(({ source }) => source)

t.test('each file is in one half, and both take about the same time, in whatever order the files come', async (t) => {
  for (const files of [FILES, FILES.toReversed()]) {
    const [first, second] = [halve(files, DURATIONS, 0), halve(files, DURATIONS, 1)]
    t.same(names(first.now).sort(), ['a', 'd'])
    t.same(names(second.now).sort(), ['b', 'c', 'e'])
    t.same(names(first.left).sort(), names(second.now).sort())
    t.same(names(second.left).sort(), names(first.now).sort())
  }
})

t.test('of the tests that are there, neither half takes a tenth more than the other, and what each commit needs is in both', async (t) => {
  const durations = await readDurations(`${packageRoot}/setup/test/durations.json`)
  const long = (await findTests(packageRoot, 'dist')).filter(({ source }) => tierOf(source) === 'long')
  const halves = [0, 1].map(half => names(halve(long, durations, half).now))
  const [first = 0, second = 0] = halves.map(half => half.reduce((sum, source) => sum + (durations[source] ?? 0), 0))
  t.ok(Math.max(first, second) < 1.1 * Math.min(first, second), `${first} s and ${second} s`)
  const [one = [], other = []] = halves
  const needed = ['test/integration/devices.long.test.ts', 'test/integration/drivers/qemu-under-kvm.long.test.ts', 'test/systems/trixie.long.test.ts']
  t.same(one.filter(source => other.includes(source)).sort(), needed)
  t.equal(new Set([...one, ...other]).size, long.length, 'nothing is in neither')
})

t.test('which half a commit has says nothing of its parts of tables', async (t) => {
  const { status, stdout } = spawnSync('git', ['rev-parse', 'HEAD'], { cwd: packageRoot, encoding: 'utf8' })
  const [tables, files] = status === 0 ? [stdout.slice(0, 8), stdout.slice(8, 16)] : ['0', '0']
  t.equal(partOfCommit(2), parseInt(tables, 16) % 2)
  t.equal(partOfCommit(2, 'files'), parseInt(files, 16) % 2)
})

t.test('half of anything but the long tier is a mistake', async (t) => {
  t.equal(parseOptions(['--long', '--half']).half, true)
  for (const args of [['--half'], ['--half', 'word'], ['--long', '--half', 'word']]) t.throws(() => parseOptions(args), /^--half: /)
})
