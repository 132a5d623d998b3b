// The real application with instances and resources on a scripted host, whose capacity is what the test says.
import type { Test } from 'tap'
import { plugin } from '../../../plugins/resources/index.ts'
import type { ResourcesView } from '../../../plugins/resources/schemas.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { startApp, type Answer, type StartOptions, type TestApp } from '../instances/app.ts'
import { startWithTemplates, type TemplateApp } from '../instances/templates-app.ts'

/** Room for ten instances of one vCPU. */
export const TEN = { capacity: { cpu: 10, memory: '100GB', disk: '100GB' }, oversubscription: { cpu: 1 }, cgroups: { mode: 'off' } }

export const SMALL = { vcpus: 1, size: '128MB' }

function withResources (options: StartOptions, resources: Record<string, unknown>): StartOptions {
  return { ...options, plugins: [plugin, ...options.plugins ?? []], sections: { resources: { config: resources } } }
}

export async function startResources (t: Test, resources: Record<string, unknown> = TEN, options: StartOptions = {}): Promise<TestApp> {
  return await startApp(t, withResources(options, resources))
}

export async function startWithSpares (t: Test, resources: Record<string, unknown> = TEN, options: StartOptions = {}): Promise<TemplateApp> {
  return await startWithTemplates(t, withResources(options, resources))
}

export async function viewOf ({ app }: Pick<TestApp, 'app'>, key: string): Promise<ResourcesView> {
  return (await app.http.inject({ url: '/resources', headers: { authorization: `Bearer ${key}` } })).json()
}

/** A small one. */
export const create = async ({ call }: Pick<TestApp, 'call'>, name: string, fields: Record<string, unknown> = {}): Promise<Answer> =>
  await call('POST', '/instances', { name, image: 'test', overlay_size: '32MB', ...SMALL, ...fields })

/** vCPUs and MB of memory and disk that are taken. */
export async function taken (app: TestApp): Promise<{ cpu: number, memory: number, overlays: number }> {
  const { cpu, memory, disk_breakdown: { overlays_bytes: overlays } } = await viewOf(app, ADMIN_KEY)
  return { cpu: cpu.allocated, memory: memory.allocated / 2 ** 20, overlays: overlays / 2 ** 20 }
}

export const running = (count: number, overlays = count): { cpu: number, memory: number, overlays: number } => ({ cpu: count, memory: count * 128, overlays: overlays * 32 })
