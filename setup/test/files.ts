// Finds the tests: each source test/**/*.test.ts, as the compiled file that runs.
import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

export interface TestFile {
  /** relative to the package */
  readonly source: string
  readonly compiled: string
}

/** The tests whose path contains one of the filters; all without a filter. */
export async function findTests (root: string, outDir: string, filters: readonly string[]): Promise<TestFile[]> {
  const sources = await readdir(join(root, 'test'), { recursive: true })
  const names = sources.map(name => join('test', name)).filter(name => name.endsWith('.test.ts'))
    .filter(name => filters.length === 0 || filters.some(filter => name.includes(filter)))
  const tests = names.map(source => ({ source, compiled: join(root, outDir, source.replace(/\.ts$/, '.js')) }))
  const missing = tests.filter(({ compiled }) => !existsSync(compiled))
  if (missing.length > 0) throw new Error(`not built: ${missing.map(({ source }) => source).join(', ')}`)
  return tests.sort((a, b) => rank(a.source) - rank(b.source) || a.source.localeCompare(b.source))
}

/** Quick tests first: their failures are cheap to see. Those that boot machines come last. */
function rank (name: string): number {
  if (name.includes('/integration/')) return 2
  return name.includes('/contracts/') || name.includes('/hypervisor-') || name.includes('/guest/') ? 1 : 0
}
