// Finds the tests: each source test/**/*.test.ts, as the compiled file that runs.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface TestFile {
  /** relative to the package */
  readonly source: string
  readonly compiled: string
}

/** Every test, by name. */
export async function findTests (root: string, outDir: string): Promise<TestFile[]> {
  const sources = (await readdir(join(root, 'test'), { recursive: true })).map(name => join('test', name)).filter(name => name.endsWith('.test.ts'))
  const tests = sources.map(source => ({ source, compiled: join(root, outDir, source.replace(/\.ts$/, '.js')) }))
  const missing = tests.filter(({ compiled }) => !existsSync(compiled))
  if (missing.length > 0) throw new Error(`not built: ${missing.map(({ source }) => source).join(', ')}`)
  return tests.sort((a, b) => a.source < b.source ? -1 : 1)
}
