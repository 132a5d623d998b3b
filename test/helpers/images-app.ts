// The server with only the images and registry plugins, in this process, for tests that need no machine.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'
import Hypeman from '@onkernel/hypeman'
import { buildApp, type App } from '../../core/app.ts'
import { definePlugin, type AllDeps, type Plugin } from '../../core/plugins/manifest.ts'
import { Type } from 'typebox'
import { plugin as images } from '../../plugins/images/index.ts'
import type { ImageService } from '../../plugins/images/contract.ts'
import type { RegistrySource } from '../../plugins/registry/contract.ts'
import { plugin as registry } from '../../plugins/registry/index.ts'
import { eventually } from './eventually.ts'
import { withoutUnpacking } from './rights.ts'
import { skipFile } from './skip-file.ts'

await skipFile(withoutUnpacking)

export const KEY = 'a-key-for-the-image-tests'

export interface ImagesApp {
  readonly dataDir: string
  /** `http://127.0.0.1:port` */
  readonly url: string
  /** `127.0.0.1:port` */
  readonly host: string
  readonly sdk: Hypeman
  /** the service that other plugins use */
  readonly images: ImageService
  /** unless the app is without it */
  readonly registry: RegistrySource
  /** core's services and those of the two plugins */
  readonly deps: Pick<AllDeps, 'images' | 'events' | 'apiKeys'>
  readonly lines: ReadonlyArray<Record<string, unknown>>
  request (method: string, path: string, body?: unknown, key?: string, headers?: Readonly<Record<string, string>>): Promise<{ status: number, body: Record<string, unknown>, headers: Headers }>
  /** Asks until the image is ready or has failed; the API offers no other way. */
  settled (name: string): Promise<Hypeman.Image>
  stop (): Promise<void>
  /** Starts another server on the same folder. */
  restart (): Promise<ImagesApp>
}

export interface ImagesAppOptions {
  readonly images?: Record<string, unknown>
  readonly registry?: Record<string, unknown> | false
  /** beside images and registry, each with its configuration */
  readonly plugins?: readonly { readonly plugin: Plugin, readonly config: Record<string, unknown> }[]
  readonly dataDir?: string
  /** the configuration's `database.url` */
  readonly databaseUrl?: string
}

export async function startImagesApp (t: Pick<Test, 'teardown'>, options: ImagesAppOptions = {}): Promise<ImagesApp> {
  const dataDir = options.dataDir ?? await temporaryFolder(t)
  let seen: ImagesApp['deps'] & { readonly registry: AllDeps['registry'] | undefined } | undefined
  const probe = definePlugin({
    manifest: { id: 'probe', provides: [], requires: ['images', 'events', 'apiKeys'], optional: ['registry'], listens: ['image.changed'], config: Type.Object({}, { additionalProperties: false }) },
    create: (deps) => ({ async start () { seen = deps } })
  })
  const lines: Array<Record<string, unknown>> = []
  const app: App = await buildApp({
    server: { dataDir, listen: '127.0.0.1:0', apiKey: KEY, metrics: { listen: '127.0.0.1:0' }, drainTimeout: '2s' },
    ...options.databaseUrl === undefined ? {} : { database: { url: options.databaseUrl } },
    log: { level: 'debug' },
    plugins: {
      // Long: what a POST answers shall not depend on how busy the machine is.
      images: { config: { resolveWait: '60s', ...options.images } },
      ...options.registry === false ? {} : { registry: { config: options.registry ?? {} } },
      ...Object.fromEntries((options.plugins ?? []).map(({ plugin, config }) => [plugin.manifest.id, { config }]))
    }
  }, {
    environment: {},
    builtIns: pathToFileURL('/nonexistent/'),
    plugins: [images, probe, ...options.registry === false ? [] : [registry], ...(options.plugins ?? []).map(({ plugin }) => plugin)],
    logStream: { write: (line) => { lines.push(JSON.parse(line)) } }
  })
  t.teardown(() => app.stop())
  await app.start()
  if (seen === undefined) throw new Error('the probe did not start')
  const { registry: registrySource } = seen
  const url = app.address()
  const sdk = new Hypeman({ baseURL: url, apiKey: KEY, maxRetries: 0 })
  return {
    dataDir,
    url,
    host: new URL(url).host,
    sdk,
    images: seen.images,
    get registry () {
      if (registrySource === undefined) throw new Error('this app has no registry')
      return registrySource
    },
    deps: seen,
    lines,
    async request (method, path, body, key = KEY, further = {}) {
      const response = await fetch(url + path, {
        method, headers: { ...further, authorization: `Bearer ${key}`, ...body === undefined ? {} : { 'content-type': 'application/json' } }, body: body === undefined ? undefined : JSON.stringify(body)
      })
      const text = await response.text()
      return { status: response.status, body: text === '' ? {} : JSON.parse(text), headers: response.headers }
    },
    async settled (name) {
      return await eventually(`${name} is ready or has failed`, async () => {
        const image = await sdk.images.get(name)
        return (image.status === 'ready' || image.status === 'failed') && image
      })
    },
    stop: () => app.stop(),
    async restart () {
      await app.stop()
      return await startImagesApp(t, { ...options, dataDir })
    }
  }
}

/** What stands in the folder of images. One is ready, or has failed, before the working folder of its pull is gone; nobody announces the latter. */
export async function folders ({ dataDir }: Pick<ImagesApp, 'dataDir'>): Promise<string[]> {
  return await eventually('the working folders are gone', async () => {
    const names = (await readdir(join(dataDir, 'images'))).sort()
    return !names.some((name) => name.startsWith('tmp-')) && names
  })
}

export async function temporaryFolder (t: Pick<Test, 'teardown'>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-images-test-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  return folder
}
