// The rules of the lint that are our own say what they should, of code that breaks them.
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Linter, type Rule } from 'eslint'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { digestOfSources } from '../../setup/test/lint.ts'

const load = async (name: string, from: string): Promise<Rule.RuleModule> => Object(await import(`${packageRoot}/setup/lint/${from}.js`))[name]

/** The lines with a complaint. */
function complaints (rule: Rule.RuleModule, code: string): number[] {
  const found = new Linter().verify(code, { plugins: { own: { rules: { rule } } }, rules: { 'own/rule': 'error' } })
  return found.map(({ line }) => line)
}

t.test('a bare true or false beside other arguments needs a name; alone, or where others fixed the order, it does not', async (t) => {
  const rule = await load('namedArguments', 'named-arguments')
  t.same(complaints(rule, ['follow(path, true)', 'new Thing(false, 1)', 'a.b.follow(path, true)'].join('\n')), [1, 2, 3])
  t.same(complaints(rule, ['follow(path, { links: true })', 'setBusy(true)', 'setTimeout(resolve, 5, false)', 'f(x, isTrue)'].join('\n')), [])
})

t.test('inside, names are in camelCase', async (t) => {
  const rule = await load('innerNames', 'inner-names')
  t.same(complaints(rule, ['const { size_gb: size } = body', 'f({ target_state: 1 })', 'x.created_at'].join('\n')), [1, 2, 3])
  t.same(complaints(rule, ['const LONG_NAME = 1', "f('size_gb: must be whole')", 'const _unused = sizeGb', "x['created_at']"].join('\n')), [])
})

t.test('a promise that nobody waits for, or that is taken for a value, is found by its type', async (t) => {
  const folder = t.testdir({
    'tsconfig.json': JSON.stringify({ compilerOptions: { strict: true, module: 'nodenext', lib: ['es2023'], types: [] }, include: ['*.ts'] }),
    'package.json': '{ "type": "module" }',
    'wrong.ts': [
      'export async function wait (): Promise<boolean> { return true }',
      'export function forget (): void { wait() }',
      'export async function late (): Promise<number> { return await 3 }',
      'export function some (list: readonly string[]): boolean { return list.some(async () => await wait()) }',
      'export async function right (): Promise<boolean> { return await wait() }'
    ].join('\n')
  })
  const args = ['--type-aware', '--config', join(packageRoot, 'setup/lint/oxlint.json'), '--format=unix', 'wrong.ts']
  const said = await new Promise<string>((resolve) => { execFile(join(packageRoot, 'node_modules/.bin/oxlint'), args, { cwd: folder, env: { ...process.env, PATH: `${join(packageRoot, 'node_modules/.bin')}:${process.env['PATH']}` } }, (_error, stdout, stderr) => { resolve(stdout + stderr) }) })
  t.same([...said.matchAll(/wrong\.ts:(\d+):\d+: .*\[Error\/typescript\(([^)]+)\)\]/g)].map(([, line, rule]) => `${line} ${rule}`), ['2 no-floating-promises', '3 await-thenable', '4 no-misused-promises'], said)
})

t.test('a change of any file that the lint reads has all linted again', async (t) => {
  const sources = Object.fromEntries(['bench', 'cli', 'core', 'examples', 'plugins', 'proxy', 'setup', 'test'].map((name) => [name, {}]))
  const folder = t.testdir({ ...sources, 'eslint.config.js': '', 'package-lock.json': '', 'tsconfig.json': '' })
  await mkdir(join(folder, 'setup/lint'))
  await writeFile(join(folder, 'setup/lint/oxlint.json'), '')
  for (const name of ['eslint.config.js', 'setup/lint/oxlint.json', 'core/a.ts', 'examples/plugin.ts', 'plugins/page.tsx', 'setup/lint/rule.js']) {
    const before = await digestOfSources(folder)
    await writeFile(join(folder, name), 'changed')
    t.not(await digestOfSources(folder), before, name)
  }
  const before = await digestOfSources(folder)
  await writeFile(join(folder, 'core/README.md'), 'changed')
  t.equal(await digestOfSources(folder), before, 'and what it does not read changes nothing')
})
