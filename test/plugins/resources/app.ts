// The real application with instances and resources on a scripted host, whose capacity is what the test says.
import type { Test } from 'tap'
import { plugin } from '../../../plugins/resources/index.ts'
import type { ResourcesView } from '../../../plugins/resources/schemas.ts'
import { startApp, type StartOptions, type TestApp } from '../instances/app.ts'
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
