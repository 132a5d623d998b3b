// The application with a volume and an instance that has it, or is to get it.
import type { Test } from 'tap'
import type { StartOptions } from '../instances/app.ts'
import { startWithVolumes, type VolumesApp } from './app.ts'

export interface Attached extends VolumesApp { readonly id: string, readonly volume: string }

export const mount = (volume: string, fields: Record<string, unknown> = {}): Record<string, unknown> => ({ volume_id: volume, mount_path: '/data', ...fields })
export const overlaid = { readonly: true, overlay: true, overlay_size: '16MB' }

/** With an instance `web` that runs and has the volume `data`. */
export async function running (t: Test, fields: Record<string, unknown> = {}, options: StartOptions = {}): Promise<Attached> {
  const app = await startWithVolumes(t, options)
  const volume = await app.makeVolume('data', { id: 'data' })
  const id = await app.make('web', { volumes: [mount('data', fields)] })
  await app.waitFor('web', 'Running')
  return { ...app, id, volume }
}

/** With one that runs without. */
export async function bare (t: Test, options: StartOptions = {}): Promise<Attached> {
  const app = await startWithVolumes(t, options)
  const volume = await app.makeVolume('data', { id: 'data' })
  const id = await app.make('web')
  await app.waitFor('web', 'Running')
  return { ...app, id, volume }
}
