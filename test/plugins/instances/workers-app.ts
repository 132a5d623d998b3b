// A scripted host, and what another plugin has of it: instances that work for that one.
import type { Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import type { InstanceWorkers, WorkerRequest } from '../../../plugins/instances/contract.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'

export interface WorkersApp extends TestApp { readonly workers: InstanceWorkers }

export async function startWithWorkers (t: Test, options: StartOptions = {}): Promise<WorkersApp> {
  let found: InstanceWorkers | undefined
  const user = definePlugin({
    manifest: { id: 'workers-user', provides: [], requires: ['workers'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ workers }) => ({ async start () { found = workers } })
  })
  const app = await startApp(t, { ...options, plugins: [user, ...options.plugins ?? []] })
  if (found === undefined) throw new Error('nobody provides workers')
  return { ...app, workers: found }
}

export const never = new AbortController().signal
/** Of a worker, for builds. */
export const request = (fields: Partial<WorkerRequest> = {}): WorkerRequest => ({
  name: 'build-1', image: 'test', argv: ['/bin/builder', '--wait'], vcpus: 2, memoryBytes: 3 * 2 ** 28, network: 'none', volumes: [], volumeOwner: 'builds', tags: { build: '1' }, ...fields
})

/** What it is called in the answer to whoever does not own it. */
export const refused = { status: 403, body: { code: 'Forbidden', message: /build-1 works for the plugin builds, and nobody else gets into it/ } }
