// A server on a scripted host whose VMs share memory files, with an instance `clone` that was made of a template and runs.
import { join } from 'node:path'
import type { Test } from 'tap'
import type { StartOptions } from './app.ts'
import { until } from './crash.ts'
import { ScriptedHost } from './scripted.ts'
import { startWithTemplates, type TemplateApp } from './templates-app.ts'

export interface SharingApp extends TemplateApp {
  /** of the clone */
  readonly id: string
  readonly template: string
  folder (id: string): string
}

export function sharingHost (): ScriptedHost {
  return Object.assign(new ScriptedHost(), { sharesMemory: true })
}

export async function clonesIn (t: Test, { config, host = sharingHost(), ...options }: StartOptions = {}): Promise<SharingApp> {
  const app = await startWithTemplates(t, { ...options, host, config: { ...config, templates: { spares: 0, ...Object(config?.['templates']) } } })
  const spares = Number(Object(Object(config?.['templates']))['spares'] ?? 0)
  const ready = async (): Promise<boolean> => await app.count('templates') === 1 && await app.count('spares') === spares
  await app.make('first')
  await until(ready)
  await app.call('DELETE', '/instances/first')
  const id = await app.make('clone')
  await app.waitFor('clone', 'Running')
  await until(ready)
  const [template = ''] = (await app.remains()).templates
  return { ...app, id, template, folder: (name) => join(app.dataDir, 'instances', name) }
}
