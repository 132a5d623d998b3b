// The application on a scripted host, with the service `instanceCopies` in the test's hands and places for what it writes.
import { appendFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import type { CopyFiles, InstanceCopies } from '../../../plugins/instances/contract.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'

export interface CopiesApp extends TestApp {
  readonly copies: InstanceCopies
  /** where copies are kept, outside of the instances' folders */
  readonly copiesFolder: string
  files (name: string): CopyFiles
  folder (id: unknown): string
}

export async function startWithCopies (t: Test, options: StartOptions = {}): Promise<CopiesApp> {
  return await withCopies(t, options, startApp)
}

/** @param start the application, which is given a plugin more */
export async function withCopies<A extends TestApp> (t: Test, options: StartOptions, start: (t: Test, options: StartOptions) => Promise<A>): Promise<A & CopiesApp> {
  let copies: InstanceCopies | undefined
  const user = definePlugin({
    manifest: { id: 'copies-user', provides: [], requires: ['instanceCopies'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ instanceCopies }) => ({ async start () { copies = instanceCopies } })
  })
  const app = await start(t, { ...options, plugins: [user] })
  if (copies === undefined) throw new Error('nobody provides instanceCopies')
  const copiesFolder = join(app.dataDir, 'copies')
  await mkdir(copiesFolder, { recursive: true, mode: 0o700 })
  return {
    ...app,
    copies,
    copiesFolder,
    files (name) {
      const path = join(copiesFolder, name)
      return { overlay: `${path}.overlay`, volumes: `${path}.volumes`, state: `${path}.state`, memory: { path: `${path}.memory` } }
    },
    folder: (id) => join(app.dataDir, 'instances', String(id))
  }
}

/** what an instance without a VM has in its folder */
export const logs = ['operations.log', 'output.log', 'overlay.ext4', 'report', 'vmm.log']

export interface Source extends CopiesApp { readonly id: string }

/** With an instance `web` in that state, on whose disk stands `first`. */
export async function sourceIn (t: Test, state: 'Running' | 'Standby' | 'Stopped', config: Record<string, unknown> = {}): Promise<Source> {
  const app = await startWithCopies(t, { config })
  const id = await app.make('web', { env: { A: 'b' }, tags: { team: 'x' }, vcpus: 2, size: '256MB', cmd: ['x'] })
  await app.waitFor('web', 'Running')
  await appendFile(join(app.folder(id), 'overlay.ext4'), 'first')
  if (state === 'Standby') await app.call('POST', '/instances/web/standby')
  if (state === 'Stopped') await app.call('POST', '/instances/web/stop')
  return { ...app, id }
}

/** What the tests have appended to a disk. */
export async function diskMark (path: string): Promise<string> {
  return (await readFile(path)).subarray(2 ** 25).toString()
}
