// Lint as one job of the run, counted like a test file.
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { packageRoot } from '../../core/package-root.ts'
import { BoundedText } from './bounded-text.ts'
import type { FileOutcome } from './count.ts'

const FOLDERS = ['bench', 'cli', 'core', 'plugins', 'proxy', 'setup', 'test']
/** has types of its own, and is looked at by eslint alone */
const EXAMPLES = 'examples'
const FILES = ['eslint.config.js', 'package-lock.json', 'setup/lint/oxlint.json', 'tsconfig.json']
const SHOWN_BYTES = 64 * 1024

/** Lints everything. Nothing is linted again after a clean run before a byte of it changes. */
export async function lint (signal: AbortSignal): Promise<FileOutcome> {
  const started = performance.now()
  const stamp = join(packageRoot, '.cache/lint-clean')
  const digest = await digestOfSources(packageRoot)
  const { isClean, said } = await isKnown(stamp, digest) ? { isClean: true, said: '' } : await runLinters(signal)
  if (isClean) {
    await mkdir(dirname(stamp), { recursive: true })
    await writeFile(stamp, digest)
  }
  return {
    name: 'lint',
    count: { passed: isClean ? 1 : 0, failed: isClean ? 0 : 1, skipped: 0 },
    failures: isClean ? [] : [{ name: 'lint', detail: 'it has something to say' }],
    skips: [],
    durationMs: performance.now() - started,
    said
  }
}

const LINTERS = [
  { name: 'oxlint', program: 'bin/oxlint', args: ['--type-aware', '--threads=1', '--config', 'setup/lint/oxlint.json', ...FOLDERS] },
  // It makes a gigabyte of short-lived objects: a larger young generation for them saves an eighth of its processor time.
  { name: 'eslint', program: 'bin/eslint.js', options: ['--max-semi-space-size=64'], args: ['--max-warnings=0', '.'] }
] as const satisfies readonly Linter[]

interface Linter {
  readonly name: string
  /** path in its package */
  readonly program: string
  /** of Node */
  readonly options?: readonly string[]
  readonly args: readonly string[]
}

/** ESLint's own cache checks one file at a time; rules here look at the types and imports of other files. So it is everything or nothing. */
export async function digestOfSources (root: string): Promise<string> {
  const found = await Promise.all([...FOLDERS, EXAMPLES].map(async folder => (await readdir(join(root, folder), { recursive: true })).map(name => join(folder, name))))
  const sources = found.flat().filter(name => /\.(?:[cm]?js|tsx?)$/.test(name)).sort()
  const hash = createHash('sha256')
  for (const name of [...FILES, ...sources]) hash.update(`${name}\0`).update(await readFile(join(root, name))).update('\0')
  return hash.digest('hex')
}

async function isKnown (stamp: string, digest: string): Promise<boolean> {
  try {
    return await readFile(stamp, 'utf8') === digest
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

async function runLinters (signal: AbortSignal): Promise<{ isClean: boolean, said: string }> {
  const text = new BoundedText(SHOWN_BYTES)
  let isClean = true
  for (const linter of LINTERS) isClean = await runLinter(linter, text, signal) && isClean
  return { isClean, said: text.toString() }
}

async function runLinter ({ name, program, options = [], args }: Linter, text: BoundedText, signal: AbortSignal): Promise<boolean> {
  const path = join(dirname(createRequire(import.meta.url).resolve(`${name}/package.json`)), program)
  const child = spawn(process.execPath, [...options, path, ...args], { cwd: packageRoot, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const end = (): void => { child.kill('SIGKILL') }
  signal.addEventListener('abort', end)
  // The signal may have aborted already, and then no event follows.
  if (signal.aborted) end()
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => text.add(chunk))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  signal.removeEventListener('abort', end)
  return code === 0
}
