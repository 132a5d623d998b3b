// The application with instances on a scripted host, and volumes.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Test } from 'tap'
import { plugin } from '../../../plugins/volumes/index.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { startApp, type Answer, type StartOptions, type TestApp } from '../instances/app.ts'

export interface VolumesApp extends TestApp {
  /** makes a volume and returns its id */
  makeVolume (name: string, fields?: Record<string, unknown>): Promise<string>
  upload (archive: Buffer, query?: string, headers?: Record<string, string>): Promise<Answer>
  attachments (id: string): Promise<unknown>
  /** what stands in the folders of volumes */
  files (): Promise<string[]>
}

export async function startWithVolumes (t: Test, options: StartOptions = {}): Promise<VolumesApp> {
  const app = await startApp(t, { ...options, plugins: [plugin, ...options.plugins ?? []] })
  return {
    ...app,
    async makeVolume (name, fields = {}) {
      const { status, body, text } = await app.call('POST', '/volumes', { name, size_gb: 1, ...fields })
      if (status !== 201) throw new Error(`volume ${name} answered ${status} ${text}`)
      return String(body['id'])
    },
    async upload (archive, query = 'name=uploaded&size_gb=1', headers = {}) {
      const answer = await app.app.http.inject({
        method: 'POST',
        url: `/volumes/from-archive?${query}`,
        headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/gzip', ...headers },
        payload: archive
      })
      return { status: answer.statusCode, headers: answer.headers, text: answer.body, body: answer.json() }
    },
    attachments: async (id) => (await app.call('GET', `/volumes/${id}`)).body['attachments'],
    files: async () => (await readdir(join(app.dataDir, 'volumes'), { recursive: true })).sort()
  }
}

/** when there is no volume */
export const EMPTY = ['disks', 'unpacking', 'uses']
