// Compiles berth-init's C tests with the sanitizers and runs them; each C check is a check here.
import t from 'tap'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { packageRoot } from '../../../../core/package-root.ts'
import { testFolder } from '../../../helpers/folder.ts'

const run = promisify(execFile)
const here = join(packageRoot, 'test/plugins/guest/init')
const programs = ['frame', 'fields', 'accounts', 'pieces', 'agent-exec', 'agent-files', 'agent-init', 'agent-life', 'agent-sleep', 'agent-rehearsal', 'agent-trust', 'agent-volumes', 'agent-listen', 'trust', 'trust-text', 'java-store', 'network']
const fuzzSeconds = 5

// Compiling takes its time on a busy machine, and the whole file counts as one test.
t.setTimeout(900_000)

interface Outcome { readonly code: number, readonly stdout: string, readonly stderr: string }

/** Runs a program to its end; a failure is an outcome as well. */
function outcome (file: string, args: readonly string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(file, [...args], { timeout: 180_000 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : -1
      resolve({ code, stdout, stderr })
    })
  })
}

function relay (child: Tap, result: Outcome): void {
  const checks = result.stdout.split('\n').flatMap((line) => {
    const parts = /^(not )?ok \d+ - (.*)$/.exec(line)
    return parts === null ? [] : [{ held: parts[1] === undefined, name: parts[2] ?? '' }]
  })
  for (const check of checks) child.ok(check.held, check.name)
  child.match(result.stdout, new RegExp(`^1\\.\\.${checks.length}$`, 'm'), 'it came to its end')
  child.equal(result.code, 0, 'it ended well')
  child.equal(result.stderr, '', 'no sanitizer has anything to say')
}
type Tap = Pick<typeof t, 'ok' | 'match' | 'equal'>

t.test('berth-init under the address and undefined-behaviour sanitizers', { timeout: 600_000 }, async (t) => {
  const folder = testFolder(t, {})
  await run('sh', [join(here, 'build-tests.sh'), folder])
  for (const program of programs) {
    await t.test(program, { timeout: 200_000 }, async (t) => {
      relay(t, await outcome(join(folder, `${program}.test`), []))
    })
  }
  await t.test('the parsers stand mutated input', { timeout: 120_000 }, async (t) => {
    const result = await outcome(join(folder, 'fuzz'), [String(fuzzSeconds)])
    relay(t, result)
    t.comment(result.stdout.split('\n')[1] ?? '')
  })
})

t.test('the program that guests get', { timeout: 120_000 }, async (t) => {
  const program = join(packageRoot, 'dist/guest/berth-init')
  const elf = await outcome('readelf', ['-lW', program])
  t.notMatch(elf.stdout, /INTERP|DYNAMIC/, 'is static')
  const result = await outcome(program, [])
  t.equal(result.code, 1, 'refuses to run as an ordinary process')
  t.match(result.stderr, /first process of a Berth guest/, 'and says why')
})
