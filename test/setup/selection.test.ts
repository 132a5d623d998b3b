// Which files a run is made of, and in which order they are taken.
import { spawnSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { bound, estimate, readDurations, recordDurations } from '../../setup/test/durations.ts'
import { parseOptions } from '../../setup/test/options.ts'
import { tierOf } from '../../setup/test/tiers.ts'
import { testFolder } from '../helpers/folder.ts'

t.test('the name of a file tells its tier', async (t) => {
  t.equal(tierOf('test/integration/egress/large.long.test.ts'), 'long')
  t.equal(tierOf('test/core/long.test.ts'), 'fast')
  t.equal(tierOf('test/core/units.test.ts'), 'fast')
})

t.test('a run is the fast tier, with --long the long one, and with words the matching files of both', async (t) => {
  t.match(parseOptions([]), { tiers: ['fast'], filters: [] })
  t.match(parseOptions(['--long']), { tiers: ['long'], filters: [] })
  t.match(parseOptions(['sdk', 'exits']), { tiers: ['fast', 'long'], filters: ['sdk', 'exits'] })
  t.match(parseOptions(['--long', 'sdk']), { tiers: ['long'], filters: ['sdk'] })
  t.match([parseOptions([]).repeat, parseOptions(['--repeat']).repeat], [false, true], 'only who asks for it has failures repeated')
  t.match([parseOptions([]).times, parseOptions(['--times']).times], [false, true], 'only who asks for it has processor time measured')
  t.throws(() => parseOptions(['--fast']), { message: /--fast/ })
})

t.test('a run with --minutes begins no file after them, names each that it left out, and has not passed when that is all', async (t) => {
  t.match([parseOptions([]).minutes, parseOptions(['--minutes', '40']).minutes], [undefined, 40])
  for (const text of ['', 'many', '-1', '1.5']) t.throws(() => parseOptions([`--minutes=${text}`]), { message: `--minutes: a whole number, and not ${text}` })
  const { status, stdout } = spawnSync(process.execPath, [join(packageRoot, 'dist/setup/test/main.js'), '--minutes', '0', 'core/units'], { cwd: packageRoot, encoding: 'utf8' })
  t.equal(status, 1)
  t.match(stdout, /\nskipped: test\/core\/units\.test\.ts: the run was to begin no file after 0 min\n0 passed, 0 failed, 1 skipped\n$/)
})

t.test('durations are kept of files that take long and are still there', async (t) => {
  const file = join(testFolder(t, { 'durations.json': '{ "gone": 50, "other": 20, "quicker-now": 30 }' }), 'durations.json')
  const known = await readDurations(file)
  const outcome = { count: { passed: 1, failed: 0, skipped: 0 }, failures: [], skips: [], said: '' }
  await recordDurations(file, known, [{ ...outcome, name: 'slow', durationMs: 61_234 }, { ...outcome, name: 'quicker-now', durationMs: 900 }], ['slow', 'other', 'quicker-now'])
  t.equal(await readFile(file, 'utf8'), '{\n  "other": 20,\n  "slow": 61\n}\n')
})

t.test('a file that nobody has measured counts by its place, and every bound is far below that of a build server', async (t) => {
  t.equal(estimate({ a: 7 }, 'a'), 7)
  t.ok(estimate({}, 'test/integration/a.test.ts') > estimate({}, 'test/core/a.test.ts'))
  t.ok(bound({ a: 10_000 }, 'a') <= 1500)
  t.ok(bound({}, 'test/core/a.test.ts') >= 300)
})
