// The runner of test files: what hangs is ended, what was left behind is ended, and what was printed is shown.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { processesIn } from '../../../setup/server/leftovers.ts'
import type { FileOutcome } from '../../../setup/test/count.ts'
import { runFile } from '../../../setup/test/run-file.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'

/** Runs a test file with this text. It finds the path of its folder in `folder`. */
async function run (t: Test, text: string, options: { boundSeconds?: number, graceMs?: number, signal?: AbortSignal } = {}): Promise<FileOutcome & { folder: string }> {
  const folder = testFolder(t, { 'a.test.js': `const folder = ${JSON.stringify(t.testdirName)}\n${text}` })
  const { boundSeconds = 120, graceMs = 60_000, signal = new AbortController().signal } = options
  return { folder, ...await runFile({ source: 'a.test.ts', compiled: join(folder, 'a.test.js') }, { bound: () => boundSeconds, graceMs, signal }) }
}

const passing = 'console.log("TAP version 14\\nok 1 - x\\n1..1")'

t.test('what a file prints besides its results is kept, its last part, and is no result', async (t) => {
  const { count, said } = await run(t, `${passing}; console.error("a warning"); console.error("x".repeat(200_000)); console.error("the end")`)
  t.strictSame(count, { passed: 1, failed: 0, skipped: 0 })
  t.match(said, /^\(\d+ bytes before this\)\n[^]*the end\n$/)
  t.ok(said.length < 100_000)
})

t.test('a file that hangs is asked to end at its bound, and fails with that as the reason', async (t) => {
  const { count, failures, said } = await run(t, `${passing}
    process.on('SIGTERM', () => { console.error('where I was'); process.exit(1) })
    setInterval(() => {}, 1000)`, { boundSeconds: 2 })
  t.equal(count.failed, 1)
  t.match(failures[0]?.detail, /not done after 2 s/)
  t.match(said, /where I was/)
})

t.test('a file that does not end when asked is killed with all of its group', async (t) => {
  const { count, folder } = await run(t, `import { spawn } from 'node:child_process'
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', folder], { stdio: 'inherit' })
    process.on('SIGTERM', () => {})
    setInterval(() => {}, 1000)`, { boundSeconds: 2, graceMs: 500 })
  t.equal(count.failed, 1)
  t.strictSame(await processesIn(folder), [])
})

t.test('a process that a file leaves behind with its output open keeps nobody waiting', async (t) => {
  const { count, folder } = await run(t, `import { spawn } from 'node:child_process'
    spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', folder], { stdio: 'inherit' }).unref()
    ${passing}
    process.exit(0)`)
  t.strictSame(count, { passed: 1, failed: 0, skipped: 0 })
  await eventually('the end of what was killed', async () => (await processesIn(folder)).length === 0)
  t.pass('it was killed')
})

t.test('an interrupted run ends the file that runs', async (t) => {
  const abort = new AbortController()
  const running = run(t, `import { writeFileSync } from 'node:fs'
    writeFileSync(folder + '/started', '')
    setInterval(() => {}, 1000)`, { signal: abort.signal })
  while (await readFile(join(t.testdirName, 'started'), 'utf8').catch(() => undefined) === undefined) await new Promise(resolve => setTimeout(resolve, 20))
  abort.abort()
  t.match((await running).failures, [{ detail: /not complete|SIGTERM/ }])
})
