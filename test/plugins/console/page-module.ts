// A module of the console's page, for a test that runs the page's own code without a browser.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import type { Test } from 'tap'
import { packageRoot } from '../../../core/package-root.ts'

/** Each call loads it anew; `path` is below plugins/console/web. */
export async function pageModule<T> (t: Test, path: string): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-page-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const outfile = join(folder, 'module.mjs')
  await build({ entryPoints: [join(packageRoot, 'plugins/console/web', path)], bundle: true, format: 'esm', outfile })
  return await import(pathToFileURL(outfile).href) as T
}
