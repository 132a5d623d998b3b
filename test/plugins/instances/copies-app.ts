// The application on a scripted host, with the service `instanceCopies` in the test's hands and places for what it writes.
import { appendFile, mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin, type Plugin } from '../../../core/plugins/manifest.ts'
import type { CopyFiles, InstanceCopies, InstanceCopy } from '../../../plugins/instances/contract.ts'
import { detailsOf } from '../../../plugins/instances/copies/copy.ts'
import type { InstanceSpec } from '../../../plugins/instances/model/record.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { ScriptedHost } from './scripted.ts'

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
  const app = await start(t, { ...options, plugins: [user, ...options.plugins ?? []] })
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

const config = Type.Object({}, { additionalProperties: false })

/** A driver `plain` of that host, which can do nothing that a driver need not do, and no more than 8 vCPUs. */
function plainDriver (host: ScriptedHost): Plugin {
  return definePlugin({
    manifest: { id: 'hypervisor-plain', provides: [], requires: [], fills: { slot: 'hypervisors', name: 'plain' }, config },
    create: () => ({ filling: { ...host.driver, name: 'plain', features: [], mostVcpus: 8 } })
  })
}

/** Holds what needs a feature, as the part of the plugin devices does. */
const part = definePlugin({
  manifest: { id: 'gadgets', provides: [], requires: [], fills: { slot: 'instanceParts', name: 'gadgets' }, config },
  create: () => ({ filling: { name: 'gadgets', rank: 50, needs: { feature: 'host-devices', fields: ['devices', 'gpu'] } } as const })
})

export interface Plain extends CopiesApp {
  /** copies of `web` by the field of a create that the driver `plain` has no feature for */
  readonly wanting: ReadonlyArray<readonly [field: string, copy: InstanceCopy]>
  /** one with a vCPU more than it can have */
  readonly crowded: InstanceCopy
  /** one that the driver can have; all of them have its files */
  readonly modest: InstanceCopy
}

/** With a second driver, without features, and an instance `web` in Stopped. */
export async function withPlainDriver (t: Test): Promise<Plain> {
  const host = new ScriptedHost()
  const app = await startWithCopies(t, { host, plugins: [plainDriver(host), part] })
  await app.make('web')
  await app.waitFor('web', 'Running')
  await app.call('POST', '/instances/web/stop')
  const modest = await app.copies.capture('web', 'Stopped', app.files('web'))
  const { created, newMachine } = detailsOf(modest)
  const having = (fields: Partial<InstanceSpec>) => ({ ...modest, spec: { created: { ...created, ...fields }, newMachine } })
  const wanting = (field: string, fields: Partial<InstanceSpec>) => [field, having(fields)] as const
  return {
    ...app,
    modest: having({ vcpus: 8 }),
    crowded: having({ vcpus: 9 }),
    wanting: [
      wanting('hotplug_size', { hotplugBytes: 2 ** 30 }),
      wanting('disk_io_bps', { diskIoBps: 2 ** 20 }),
      wanting('devices', { devices: ['card'] }),
      wanting('gpu', { gpu: { profile: 'half', mdevUuid: '0' } })
    ]
  }
}
