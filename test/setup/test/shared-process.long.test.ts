// Several test files in one process: each has its own results, and what one does to the process costs no other.
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t, { type Test } from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import type { FileOutcome } from '../../../setup/test/count.ts'
import type { TestFile } from '../../../setup/test/files.ts'
import { runFiles } from '../../../setup/test/run-file.ts'
import { testFolder } from '../../helpers/folder.ts'

const compiled = (path: string): string => JSON.stringify(pathToFileURL(join(packageRoot, 'dist', path)).href)

/** Runs files with these texts, which have `t`, in one process as far as that goes. */
async function run (t: Test, texts: Readonly<Record<string, string>>, { boundSeconds = 120, times = false } = {}): Promise<FileOutcome[]> {
  const folder = testFolder(t, Object.fromEntries(Object.entries(texts).map(([name, text]) => [`${name}.test.js`, `import t from ${compiled('test/node_modules/tap/index.js')}\n${text}`])))
  const files = Object.keys(texts).map((name): TestFile => ({ source: `${name}.test.ts`, compiled: join(folder, `${name}.test.js`) }))
  const [first, ...rest] = files
  if (first === undefined) throw new Error('no file')
  return await runFiles([first, ...rest], { bound: () => boundSeconds, signal: new AbortController().signal, graceMs: 1000, times })
}

const passing = "t.test('x', async (t) => { t.pass() })"
const ofProcess = "t.test('x', async (t) => { t.equal(process.pid, globalThis.first ??= process.pid) }); t.test('y', async (t) => { console.error(process.pid) ; t.pass() })"

t.test('files share a process, and each has its own tests and its own output', async (t) => {
  const outcomes = await run(t, { a: ofProcess, b: ofProcess, c: passing })
  t.match(outcomes, [
    { name: 'a.test.ts', count: { passed: 2, failed: 0 }, durationMs: Number }, { name: 'b.test.ts', count: { passed: 2, failed: 0 } }, { name: 'c.test.ts', count: { passed: 1, failed: 0 } }
  ])
  t.equal(new Set(outcomes.map(({ said }) => said.trim()).filter((said) => said !== '').join('\n').split('\n')).size, 1, 'one process')
})

t.test('the failure of a file is its own', async (t) => {
  const outcomes = await run(t, { a: passing, b: "t.test('sums', async (t) => { t.equal(1 + 1, 3, 'the sum') })", c: passing })
  t.match(outcomes.map(({ count }) => count), [{ passed: 1, failed: 0 }, { passed: 0, failed: 1 }, { passed: 1, failed: 0 }])
  t.match(outcomes[1]?.failures, [{ name: 'b.test.ts > sums > the sum' }])
})

t.test('what a file that throws as it is loaded has said fails that file', async (t) => {
  const outcomes = await run(t, { a: "throw new Error('not today')", b: passing })
  t.match(outcomes, [{ count: { failed: 1 }, failures: [{ name: /not today/ }] }, { count: { passed: 1, failed: 0 } }])
})

t.test('a file that ends its process fails, and those after it run in another', async (t) => {
  for (const end of ['process.exit(0)', 'process.exit(3)', "process.kill(process.pid, 'SIGKILL')"]) {
    const outcomes = await run(t, { a: passing, b: `t.test('x', async (t) => { t.pass(); ${end} })`, c: passing, d: passing })
    t.match(outcomes.map(({ name, count }) => [name, count.failed > 0]), [['a.test.ts', false], ['b.test.ts', true], ['c.test.ts', false], ['d.test.ts', false]], end)
    t.match(outcomes.map(({ count }) => count.passed), [1, Number, 1, 1], end)
  }
})

t.test('a file that blocks its process is ended at the bound of all, and those after it run in another', async (t) => {
  const outcomes = await run(t, { a: passing, b: "t.test('x', async () => { for (;;); })", c: passing }, { boundSeconds: 3 })
  t.match(outcomes, [{ count: { passed: 1, failed: 0 } }, { count: { failed: 1 } }, { count: { passed: 1, failed: 0 } }])
  t.match(outcomes[1]?.failures.at(-1)?.detail, /not done after 9 s/)
})

t.test('a file that never ends is given up at its own bound, and those after it run', async (t) => {
  const outcomes = await run(t, { a: "const busy = setInterval(() => {}, 1000); t.teardown(() => clearInterval(busy)); t.test('x', async () => { await new Promise(() => {}) })", b: passing }, { boundSeconds: 3 })
  t.match(outcomes, [{ count: { failed: 1 }, failures: [{ name: /timeout/ }] }, { count: { passed: 1, failed: 0 } }])
})

t.test('what a file began is ended before the next file begins', async (t) => {
  const outcomes = await run(t, {
    a: `globalThis.open = true; t.teardown(() => { globalThis.open = false }); ${passing}`,
    b: "t.before(() => { globalThis.ready = true }); t.test('x', async (t) => { t.equal(globalThis.open, false); t.equal(globalThis.ready, true) })"
  })
  t.match(outcomes, [{ count: { passed: 1, failed: 0 } }, { count: { passed: 1, failed: 0 } }])
})

t.test('an error answer that the document does not name fails the file of its server', async (t) => {
  const publish = `const { undocumentedErrors } = await import(${compiled('core/http/undocumented-errors.js')}); undocumentedErrors.publish({ method: 'GET', url: '/x', status: 418, code: 'teapot' }); ${passing}`
  const outcomes = await run(t, { a: passing, b: publish, c: passing })
  t.match(outcomes, [{ count: { failed: 0 } }, { count: { failed: 1 }, failures: [{ name: /b\.test\.ts > GET \/x answered 418 teapot/ }] }, { count: { failed: 0 } }])
})
