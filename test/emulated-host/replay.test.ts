// What was asserted elsewhere is asserted here, and what failed there fails here.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createCounter, type FileOutcome } from '../../setup/test/count.ts'
import { deathIn } from './host.ts'

const TAP = `TAP version 14
# Subtest: outer
    # Subtest: inner
        ok 1 - one thing
        ok 2 - another # SKIP there is no such thing
        1..2
    ok 1 - inner # time=1ms
    1..1
ok 1 - outer # time=2ms
`

await t.test('blocks and assertions come again, and skips with their reasons', async (t) => {
  const { count, failures, skips } = await countOf(TAP)
  t.same(failures, [])
  t.same(count, { passed: 1, failed: 0, skipped: 1 })
  t.match(skips, [{ reason: 'there is no such thing' }])
})

await t.test('what failed there fails here, and so does a block that ended without a word', async (t) => {
  t.equal((await countOf(TAP.replace('ok 1 - one thing', 'not ok 1 - one thing'))).count.failed, 1)
  t.ok((await countOf('TAP version 14\n# Subtest: outer\n    1..0\nnot ok 1 - outer # timeout\n')).count.failed > 0)
})

await t.test('the death of a kernel is told from what it says while it lives', async (t) => {
  t.equal(deathIn('[1.0] kvm: Nested Paging enabled\n[2.0] Unhandled WRMSR(0xc0010007) = 0x0\n'), undefined)
  for (const line of ['[1.0] BUG: TASK stack guard page was hit at 0', '[2.0] Kernel panic - not syncing: corrupted stack end detected inside scheduler']) {
    t.equal(deathIn(`before\n${line}\nafter`), line)
  }
})

/** What a run of a file counts that replays the text. */
async function countOf (tap: string): Promise<FileOutcome> {
  const counter = createCounter('replayed')
  const child = spawn(process.execPath, [fileURLToPath(new URL('replay-input.js', import.meta.url))], { env: { ...process.env, TAP: '1' }, stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.end(tap)
  child.stdout.on('data', (chunk: Buffer) => counter.parser.write(chunk))
  const [exitCode, signal] = await once(child, 'close')
  counter.parser.end()
  return counter.finish({ exitCode, signal })
}
