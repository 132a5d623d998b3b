// An instance on a scripted host whose server keeps VMs in standby.
import { join } from 'node:path'
import type { Test } from 'tap'
import type { TestApp } from '../app.ts'
import type { ImagingStep } from '../scripted.ts'

export const ON = { hotStandby: { enabled: true } }

export interface Running extends TestApp { readonly id: string, readonly folder: string, readonly steps: ImagingStep[] }

/** The instance `web`, running. */
export async function runningIn<A extends TestApp> (app: A, fields: Record<string, unknown> = {}): Promise<A & Running> {
  const id = await app.make('web', { size: '256MB', ...fields })
  await app.waitFor('web', 'Running')
  const steps: ImagingStep[] = []
  app.host.onStep = (step) => { steps.push(step) }
  return { ...app, id, folder: join(app.dataDir, 'instances', id), steps }
}

export async function restored (t: Test, { call }: Pick<TestApp, 'call'>): Promise<void> {
  t.match(await call('POST', '/instances/web/restore'), { status: 200, body: { state: 'Running', has_snapshot: false } })
}
