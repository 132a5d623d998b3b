// A server on a scripted host that makes templates, and what a test wants to know of it.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Registry } from 'prom-client'
import type { Test } from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { until } from './crash.ts'
import { openDatabase } from './database.ts'
import type { ScriptedVm } from './scripted.ts'

export interface TemplateApp extends TestApp {
  /** what the metrics say */
  count (name: 'templates' | 'spares'): Promise<number>
  wayOf (id: string): Promise<string>
  /** the ids that have a folder, and those that have a row */
  remains (): Promise<{ folders: string[], rows: string[], templates: string[] }>
  /** creates an instance and waits until the background has done its work */
  warmUp (fields?: Record<string, unknown>): Promise<string>
  lines: Record<string, unknown>[]
}

const templates = { enabled: true, quiet: '10ms' }

/** Starts a server that makes templates as soon as it can. */
export async function startWithTemplates (t: Test, { config, ...options }: StartOptions = {}): Promise<TemplateApp> {
  const lines: Record<string, unknown>[] = []
  let registry: Registry | undefined
  const peek = definePlugin({
    manifest: { id: 'peek', provides: [], requires: ['metrics'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ metrics }) => ({ async start () { registry = metrics } })
  })
  const app = await startApp(t, { lines, ...options, plugins: [peek, ...options.plugins ?? []], config: { memoryFiles: false, ...config, templates: { ...templates, ...Object(config?.['templates']) } } })
  const host: TemplateApp = {
    ...app,
    lines,
    async count (name) {
      const { values } = await registry?.getSingleMetric(`berth_instances_${name}`)?.get() ?? { values: [] }
      return Number(values[0]?.value)
    },
    async wayOf (id) {
      const log = await readFile(join(app.dataDir, 'instances', id, 'operations.log'), 'utf8')
      return /create: ([^:]+):/.exec(log)?.[1] ?? log
    },
    async remains () {
      const database = await openDatabase(app.dataDir)
      try {
        const rows: { id: string }[] = await database('instances_instances').select('id')
        return {
          folders: (await readdir(join(app.dataDir, 'instances'))).sort(),
          rows: rows.map(({ id }) => id).sort(),
          templates: (await readdir(join(app.dataDir, 'templates'))).filter((name) => name !== 'stage.erofs').sort()
        }
      } finally {
        await database.destroy()
      }
    },
    async warmUp (fields) {
      const id = await app.make('first', fields)
      await until(async () => await host.count('spares') === 1)
      return id
    }
  }
  return host
}

/** The VMs that run or are paused. */
export const alive = ({ host }: TestApp): ScriptedVm[] => host.vms.filter(({ state }) => state.status !== 'gone')
