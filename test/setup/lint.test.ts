// The rules of the lint that are our own say what they should, of code that breaks them.
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Linter, type Rule } from 'eslint'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { digestOfSources } from '../../setup/test/lint.ts'
import { testFolder } from '../helpers/folder.ts'

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

t.test('what the command imports of the server is in the package of the client', async (t) => {
  const { files } = JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')) as { files: readonly string[] }
  const missing = new Set<string>()
  for (const name of (await readdir(join(packageRoot, 'dist/cli'), { recursive: true })).filter((each) => each.endsWith('.js'))) {
    for (const [, path = ''] of (await readFile(join(packageRoot, 'dist/cli', name), 'utf8')).matchAll(/ from '(\.[^']+)'/g)) {
      const imported = join('dist/cli', name, '..', path)
      if (!files.some((file) => imported === file || imported.startsWith(`${file}/`))) missing.add(imported)
    }
  }
  t.strictSame([...missing], [])
})

// A line, and what is said of it: a rule of each plugin, so that none is lost in silence.
const WRONG = [
  ["import { a } from '../plugins/a.ts'", 'berth(boundaries)'],
  ['export async function wait (): Promise<boolean> { return true }'],
  ['export function forget (): void { wait() }', 'typescript(no-floating-promises)'],
  ['export async function late (): Promise<number> { return await 3 }', 'typescript(await-thenable)'],
  ['export function some (list: readonly string[]): boolean { return list.some(async () => await wait()) }', 'typescript(no-misused-promises)'],
  ['export async function right (): Promise<boolean> { return await wait() && a }'],
  ["export const home = process.env['HOME']", 'eslint(no-restricted-properties)'],
  ["export const path = __dirname + '/a'", 'node(no-path-concat)'],
  ['export const asked = new Promise((ok, reject) => { reject(ok) })', 'promise(param-names)'],
  ['export const list = [ 1]', '@stylistic(array-bracket-spacing)'],
  ['export const two_words = 1', 'eslint-core(camelcase)'],
  ['export const cast = list as unknown as string', 'eslint-core(no-restricted-syntax)'],
  ['export const slow = /^(a+)+$/', 'regexp(no-super-linear-backtracking)'],
  ["export function read (callback: (text: string) => void): void { callback('text') }", 'n(no-callback-literal)'],
  ['export const fast = 1 // eslint-disable-line no-debugger', 'unused']
] as const

t.test('the rules find what they should, by the configuration that there is', async (t) => {
  const folder = testFolder(t, {
    'tsconfig.json': JSON.stringify({ compilerOptions: { strict: true, module: 'nodenext', lib: ['es2023'], types: [] }, include: ['.'] }),
    'package.json': '{ "type": "module" }',
    core: { 'wrong.ts': WRONG.map(([line]) => `${line}\n`).join(''), 'lone.ts': 'export const known = 1\nexport interface Lone { readonly a: number }\nexport const lone = 2\nexport const later = 3\nexport { later as latest }\n' },
    plugins: { 'a.ts': 'export const a = true\n', 'page.tsx': 'export const items = [1].map((n) => <li>{n}</li>)\nexport const text = <p id="a">a</p>\n' },
    setup: {},
    test: { 'uses.ts': "import * as wrong from '../core/wrong.ts'\nimport { known, later as soon } from '../core/lone.ts'\nimport { items, text } from '../plugins/page.tsx'\nexport { wrong, known, soon, items, text }\n" }
  })
  // The patterns of the file are of the folder that it stands in.
  for (const name of ['.oxlintrc.json', 'setup/lint']) await cp(join(packageRoot, name), join(folder, name), { recursive: true })
  const said = await new Promise<string>((resolve) => { execFile(join(packageRoot, 'node_modules/.bin/oxlint'), ['--format=unix', 'core/wrong.ts', 'core/lone.ts', 'plugins/page.tsx'], { cwd: folder, env: { ...process.env, PATH: `${join(packageRoot, 'node_modules/.bin')}:${process.env['PATH']}` } }, (_error, stdout, stderr) => { resolve(stdout + stderr) }) })
  const found = [...said.matchAll(/^(\S+):(\d+):\d+: (Unused)?.* \[Error(?:\/(\S+))?\]$/gm)].map(([, file, line, unused, rule]) => `${file}:${line} ${rule ?? unused?.toLowerCase()}`)
  t.same(found.sort(), [...WRONG.flatMap(([, rule], index) => rule === undefined ? [] : [`core/wrong.ts:${index + 1} ${rule}`]), 'core/lone.ts:3 berth(used-exports)', 'core/lone.ts:5 berth(used-exports)', 'plugins/page.tsx:1 react(jsx-key)', 'plugins/page.tsx:2 @stylistic(jsx-quotes)'].sort(), said)
})

t.test('a change of any file that the lint reads has all linted again', async (t) => {
  const sources = Object.fromEntries(['core', 'examples', 'plugins', 'setup'].map((name) => [name, {}]))
  const folder = testFolder(t, { ...sources, '.oxlintrc.json': '', 'package-lock.json': '', dist: {} })
  await mkdir(join(folder, 'setup/lint'))
  for (const name of ['.oxlintrc.json', 'package-lock.json', 'tsconfig.json', 'core/a.ts', 'examples/plugin.ts', 'plugins/page.tsx', 'setup/lint/rule.js']) {
    const before = await digestOfSources(folder)
    await writeFile(join(folder, name), 'changed')
    t.not(await digestOfSources(folder), before, name)
  }
  const before = await digestOfSources(folder)
  for (const name of ['core/README.md', 'dist/a.js']) await writeFile(join(folder, name), 'changed')
  t.equal(await digestOfSources(folder), before, 'and what it does not read changes nothing')
})
