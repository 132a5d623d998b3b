// `npm test`: lint, then every test file, then the count as the last line. The type check was the build before it.
// Each file runs as plain Node, not under tap's own command: that one hooks into module loading and into the environment of
// every child process, and servers and machines here are child processes.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packageRoot } from '../../core/package-root.ts'
import type { Failure, FileOutcome, Skip, TestCount } from './count.ts'
import { findTests, type TestFile } from './files.ts'
import { runFile } from './run-file.ts'

const outDir = relative(packageRoot, join(dirname(fileURLToPath(import.meta.url)), '../..'))
/** Machines under emulation are heavy, so as many files at a time as the smallest supported host has processors. */
const parallelFiles = 2

interface Total { readonly count: TestCount, readonly failures: Failure[], readonly skips: Skip[] }

/** Whether ESLint finds nothing; what it finds comes to this terminal. */
async function isLintClean (): Promise<boolean> {
  const eslint = join(dirname(createRequire(import.meta.url).resolve('eslint/package.json')), 'bin/eslint.js')
  const child = spawn(process.execPath, [eslint, '--max-warnings=0', '.'], { cwd: packageRoot, stdio: 'inherit' })
  return await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', code => resolve(code === 0))
  })
}

function printFile (outcome: FileOutcome): void {
  const { passed, failed, skipped } = outcome.count
  const counts = [`${passed} passed`, ...(failed > 0 ? [`${failed} failed`] : []), ...(skipped > 0 ? [`${skipped} skipped`] : [])].join(', ')
  console.log(`${failed > 0 ? 'FAIL' : 'ok  '} ${outcome.name} (${counts}) ${((outcome.durationMs ?? 0) / 1000).toFixed(1)} s`)
  for (const failure of outcome.failures) console.log(indent(`not ok: ${failure.name}\n${indent(failure.detail)}`))
}

function indent (text: string): string {
  return text.split('\n').map(line => `    ${line}`).join('\n')
}

function add (total: Total, outcome: FileOutcome): void {
  total.count.passed += outcome.count.passed
  total.count.failed += outcome.count.failed
  total.count.skipped += outcome.count.skipped
  total.failures.push(...outcome.failures)
  total.skips.push(...outcome.skips)
}

/** Runs the files, a few at a time, in their order. */
async function runAll (files: readonly TestFile[], total: Total, signal: AbortSignal): Promise<void> {
  const waiting = [...files]
  await Promise.all(Array.from({ length: parallelFiles }, async () => {
    for (let file = waiting.shift(); file !== undefined && !signal.aborted; file = waiting.shift()) {
      const outcome = await runFile(file, signal)
      add(total, outcome)
      printFile(outcome)
    }
  }))
}

function fail (total: Total, name: string): void {
  total.count.failed++
  total.failures.push({ name, detail: '' })
}

function printSummary (total: Total): void {
  console.log('')
  for (const skip of total.skips) console.log(`skipped: ${skip.name}: ${skip.reason}`)
  for (const failure of total.failures) console.log(`failed: ${failure.name}`)
  const { passed, failed, skipped } = total.count
  console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
}

async function main (filters: readonly string[]): Promise<number> {
  const total: Total = { count: { passed: 0, failed: 0, skipped: 0 }, failures: [], skips: [] }
  const interrupt = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interrupt.abort())
  const started = performance.now()
  const isClean = await isLintClean()
  console.log(`lint: ${isClean ? 'clean' : 'failed'} (${((performance.now() - started) / 1000).toFixed(1)} s)`)
  if (!isClean) fail(total, 'lint')
  const files = await findTests(packageRoot, outDir, filters)
  if (files.length === 0) fail(total, `no test file matches ${filters.join(', ')}`)
  await runAll(files, total, interrupt.signal)
  if (interrupt.signal.aborted) fail(total, 'interrupted')
  printSummary(total)
  return total.count.failed === 0 && total.count.passed > 0 ? 0 : 1
}

process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => {
  console.log(error instanceof Error ? error.message : String(error))
  console.log('0 passed, 1 failed')
  return 1
})
