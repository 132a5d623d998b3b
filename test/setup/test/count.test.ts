// The test counter: what it counts as a test, and that nothing that went wrong is lost.
import t from 'tap'
import { createCounter, type Ending, type FileOutcome } from '../../../setup/test/count.ts'

function read (lines: readonly string[], ending: Partial<Ending> = {}): FileOutcome {
  const counter = createCounter('a.test.ts')
  counter.parser.end(['TAP version 14', ...lines, ''].join('\n'))
  return counter.finish({ exitCode: 0, signal: null, ...ending })
}

const one = ['# Subtest: one', '    ok 1 - x', '    1..1', 'ok 1 - one']

t.test('each named block is one test, however much it asserts', async (t) => {
  const { count } = read([...one, '# Subtest: two', '    ok 1 - x', '    ok 2 - y', '    1..2', 'ok 2 - two', '1..2'])
  t.strictSame(count, { passed: 2, failed: 0, skipped: 0 })
})

t.test('a block with blocks inside counts as those', async (t) => {
  const { count } = read([
    '# Subtest: outer', '    # Subtest: inner', '        ok 1 - x', '        1..1', '    ok 1 - inner', '    ok 2 - in the outer block', '    1..2', 'ok 1 - outer', '1..1'
  ])
  t.strictSame(count, { passed: 1, failed: 0, skipped: 0 })
})

t.test('a file without blocks is one test', async (t) => {
  t.strictSame(read(['ok 1 - x', 'ok 2 - y', '1..2']).count, { passed: 1, failed: 0, skipped: 0 })
})

t.test('a failure is counted once and named with its path', async (t) => {
  const { count, failures } = read([
    '# Subtest: one', '    not ok 1 - numbers agree', '      ---', '      diff: |', '        -1', '        +2', '      stderr: no such host', '      ...', '    1..1', 'not ok 1 - one', '1..1'
  ], { exitCode: 1 })
  t.strictSame(count, { passed: 0, failed: 1, skipped: 0 })
  t.equal(failures[0]?.name, 'a.test.ts > one > numbers agree')
  t.match(failures[0]?.detail, /\+2/)
  t.match(failures[0]?.detail, /no such host/)
})

t.test('a file that fails although its tests pass is a failure', async (t) => {
  t.match(read([...one, '1..1'], { exitCode: 7 }), { count: { passed: 1, failed: 1 }, failures: [{ detail: /code 7/ }] })
  t.match(read([...one, '1..1'], { exitCode: null, signal: 'SIGKILL' }), { count: { passed: 1, failed: 1 }, failures: [{ detail: /SIGKILL/ }] })
})

t.test('a skip needs a reason', async (t) => {
  const { count, skips } = read(['ok 1 - with # SKIP no such device', 'ok 2 - without # SKIP', '1..2'])
  t.strictSame(count, { passed: 0, failed: 1, skipped: 1 })
  t.strictSame(skips, [{ name: 'a.test.ts > with', reason: 'no such device' }])
})

t.test('a file that is skipped as a whole is one skip', async (t) => {
  t.match(read(['1..0 # SKIP not on this host']), { count: { passed: 0, failed: 0, skipped: 1 }, skips: [{ reason: 'not on this host' }] })
})

t.test('a test that asserts nothing has failed', async (t) => {
  t.strictSame(read(['# Subtest: idle', '    1..0', 'ok 1 - idle', '1..1']).count, { passed: 0, failed: 1, skipped: 0 })
})

t.test('results that are missing, break off, give up or do not add up are a failure', async (t) => {
  for (const lines of [[], ['# Subtest: one', '    ok 1 - x'], [...one], [...one, '1..2'], [...one, 'Bail out! on fire']]) {
    t.ok(read(lines, { exitCode: 1 }).count.failed > 0, lines.join(' / '))
  }
})
