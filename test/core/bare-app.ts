// A kernel without built-in plugins, on a data folder of its own, for the tests of core.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import { buildApp, type App, type BuildOptions } from '../../core/app.ts'

export const ADMIN_KEY = 'an-admin-key-for-tests'
export const authorization = { authorization: `Bearer ${ADMIN_KEY}` }

/** A folder that is gone after the test. Outside of the repository, so that nothing in it finds the repository's packages. */
export async function temporaryFolder (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-core-test-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** A folder without plugins, to be used as the folder of the built-in ones. */
export const noBuiltIns = pathToFileURL('/nonexistent/')

export interface BareApp { readonly app: App, readonly dataDir: string, readonly lines: Record<string, unknown>[] }

/** Builds the application and stops it after the test; log lines are collected. */
export async function bareApp (t: Test, config: Record<string, unknown> = {}, options: BuildOptions = {}): Promise<BareApp> {
  const folder = await temporaryFolder(t)
  const lines: Record<string, unknown>[] = []
  const server = { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { listen: '127.0.0.1:0' } }
  const app = await buildApp({ server, ...config }, {
    environment: {},
    builtIns: noBuiltIns,
    folder,
    logStream: { write: line => { lines.push(JSON.parse(line)) } },
    ...options
  })
  t.teardown(() => app.stop())
  return { app, dataDir: server.dataDir, lines }
}
