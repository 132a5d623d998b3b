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

const FILES = ['.oxlintrc.json', 'package-lock.json']
/** what the linter leaves out of the folder, too: it looks at all else */
const LEFT_OUT = /^(?:\.|node_modules$|dist$|dist-)/
const SHOWN_BYTES = 64 * 1024

/** Lints everything. Nothing is linted again after a clean run before a byte of it changes. */
export async function lint (signal: AbortSignal): Promise<FileOutcome> {
  const started = performance.now()
  const stamp = join(packageRoot, '.cache/lint-clean')
  const digest = await digestOfSources(packageRoot)
  const { isClean, said } = await isKnown(stamp, digest) ? { isClean: true, said: '' } : await runLinter(signal)
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

/** A cache of the linter's would check one file at a time; rules here look at the types and imports of other files. So it is everything or nothing. */
export async function digestOfSources (root: string): Promise<string> {
  const entries = (await readdir(root, { withFileTypes: true })).filter(({ name }) => !LEFT_OUT.test(name))
  const found = await Promise.all(entries.map(async entry => entry.isDirectory() ? (await readdir(join(root, entry.name), { recursive: true })).map(name => join(entry.name, name)) : [entry.name]))
  const sources = found.flat().filter(name => /\.(?:[cm]?js|tsx?)$|\btsconfig\.json$/.test(name)).sort()
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

async function runLinter (signal: AbortSignal): Promise<{ isClean: boolean, said: string }> {
  const program = join(dirname(createRequire(import.meta.url).resolve('oxlint/package.json')), 'bin/oxlint')
  const text = new BoundedText(SHOWN_BYTES)
  const child = spawn(process.execPath, [program, '--threads=1'], { cwd: packageRoot, detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
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
  return { isClean: code === 0, said: text.toString() }
}
