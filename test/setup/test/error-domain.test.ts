import t, { type Test } from 'tap'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { Parser, type Result } from 'tap-parser'
import { testFolder } from '../../helpers/folder.ts'

const BUNDLE = new URL('../../node_modules/tap/index.js', import.meta.url).href

/** The failed assertions of a test file with this text, with the test that they were reported of. */
async function failures (t: Test, text: string): Promise<string[]> {
  const folder = testFolder(t, { 'some.test.mjs': `import t from ${JSON.stringify(BUNDLE)}\n${text}` })
  const child = spawn(process.execPath, [join(folder, 'some.test.mjs')], { env: { ...process.env, TAP: '1' }, stdio: ['ignore', 'pipe', 'ignore'] })
  const parser = new Parser()
  const found: string[] = []
  listen(parser, found)
  child.stdout.on('data', (chunk: Buffer) => parser.write(chunk))
  const code = await new Promise<number | null>((resolve) => { child.once('close', resolve) })
  parser.end()
  t.equal(code, found.length === 0 ? 0 : 1)
  return found
}

/** Where a test's name stands at its beginning, another test's late result may come in between; so it is taken from its own result. Returns the failed assertions of the test itself. */
function listen (parser: Parser, found: string[]): readonly string[] {
  const failed: string[] = []
  let inside: readonly string[] | undefined
  parser.on('child', (child: Parser) => { inside = listen(child, found) })
  parser.on('assert', ({ ok, name }: Result) => {
    if (inside === undefined) {
      if (!ok) failed.push(name)
      return
    }
    found.push(...inside.map((each) => `${name}: ${each}`))
    inside = undefined
  })
  return failed
}

const LATER = `import { setTimeout as delay } from 'node:timers/promises'
/** Resolves once what the work has thrown is reported. */
const soon = async (work) => await new Promise((resolve) => { setTimeout(() => { setImmediate(resolve); work() }, 1) })
`

t.test('an error that nobody caught is reported of the test that began what threw it', async (t) => {
  t.same(await failures(t, `${LATER}
await t.test('first', async (t) => { t.ok(true) })
await t.test('second', async () => { await soon(() => { throw new Error('thrown') }) })
await t.test('third', async () => { await soon(() => { void Promise.reject(new Error('rejected')) }) })
await t.test('fourth', async (t) => { t.ok(true) })`), ['second: thrown', 'third: rejected'])
})

t.test('of two tests that run at a time, the one that it belongs to fails', async (t) => {
  t.same(await failures(t, `${LATER}
t.jobs = 2
await Promise.all([
  t.test('left', async (t) => { await delay(20); setTimeout(() => { throw new Error('thrown') }, 1); await delay(20); t.ok(true) }),
  t.test('right', async (t) => { await delay(60); t.ok(true) })
])`), ['left: thrown'])
})

t.test('what an ended test left behind is reported of the one around it', async (t) => {
  t.same(await failures(t, `${LATER}
await t.test('around', async (t) => {
  await t.test('inside', async (t) => { setTimeout(() => { throw new Error('late') }, 20); t.ok(true) })
  await delay(60)
})`), ['around: late'])
})

t.test('a test with a listener of its own gets the error instead', async (t) => {
  t.same(await failures(t, `${LATER}
for (const event of ['unhandledRejection', 'uncaughtException']) {
  await t.test(event, async (t) => {
    const seen = []
    const listener = (error) => { seen.push(error.message) }
    process.on(event, listener)
    await soon(event === 'uncaughtException' ? () => { throw new Error('mine') } : () => { void Promise.reject(new Error('mine')) })
    process.off(event, listener)
    t.same(seen, ['mine'])
  })
}`), [])
})
