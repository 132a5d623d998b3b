// The real application with builds that a scripted runner does: real database, real HTTP, real files.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Test } from 'tap'
import { buildApp, type App } from '../../../core/app.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import type { Clocks } from '../../../core/steady-clock.ts'
import type { BuildRunner } from '../../../plugins/builds/run.ts'
import type { ImageService } from '../../../plugins/images/contract.ts'
import { ADMIN_KEY, noBuiltIns, temporaryFolder } from '../../core/bare-app.ts'
import { tar } from '../../helpers/tar.ts'
import { hostPlugins } from './host.ts'
import { ScriptedRunner } from './scripted-runner.ts'
import { until } from '../../helpers/eventually.ts'

export { until }

export const SOURCE = gzipSync(tar([{ path: 'Dockerfile', content: Buffer.from('FROM scratch\nCOPY . /\n') }]))

export interface Answer { readonly status: number, readonly body: Record<string, unknown>, readonly headers: Record<string, unknown>, readonly text: string }

export type Fields = Readonly<Record<string, string | Buffer>>

export interface BuildsApp {
  readonly app: App
  readonly dataDir: string
  readonly runner: ScriptedRunner
  readonly lines: Record<string, unknown>[]
  call (method: 'GET' | 'POST' | 'DELETE', url: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** Sends a form; buffers are files. */
  post (fields: Fields, headers?: Record<string, string>): Promise<Answer>
  /** Asks for a build and returns its id. */
  build (fields?: Fields): Promise<string>
  /** the answer of GET /builds/{id} */
  get (id: string): Promise<Record<string, unknown>>
  /** Waits until it is so. */
  become (id: string, status: string): Promise<Record<string, unknown>>
  /** what stands in the folder of builds, but for logs */
  files (): Promise<string[]>
}

export interface StartOptions {
  readonly dataDir?: string
  readonly runner?: ScriptedRunner
  /** who does the builds in its place */
  readonly builds?: BuildRunner
  readonly config?: Record<string, unknown>
  readonly listen?: boolean
  readonly requireImage?: ImageService['require']
  readonly server?: Record<string, unknown>
  /** of builds; absent: the host's */
  readonly clocks?: Clocks
}

export async function startBuilds (t: Test, options: StartOptions = {}): Promise<BuildsApp> {
  const runner = options.runner ?? new ScriptedRunner()
  const dataDir = options.dataDir ?? join(await temporaryFolder(t), 'data')
  const lines: Record<string, unknown>[] = []
  const app = await buildApp({
    server: { dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { listen: '127.0.0.1:0' }, drainTimeout: '2s', ...options.server },
    plugins: { builds: { config: { builderDisk: '1GB', ...options.config } } }
  }, {
    environment: {},
    builtIns: noBuiltIns,
    folder: dataDir,
    plugins: hostPlugins(options.builds ?? runner, options.requireImage, options.clocks),
    logStream: { write: (line) => { lines.push(JSON.parse(line)) } }
  })
  t.teardown(async () => { await app.stop() })
  await app.start({ listen: options.listen ?? false })
  const send = async (method: 'GET' | 'POST' | 'DELETE', url: string, payload: string | Buffer | undefined, headers: Record<string, string>): Promise<Answer> => {
    const answer = await app.http.inject({ method, url, headers: { authorization: `Bearer ${ADMIN_KEY}`, ...headers }, ...payload === undefined ? {} : { payload } })
    const isJson = String(answer.headers['content-type']).includes('json')
    return { status: answer.statusCode, headers: answer.headers, text: answer.body, body: isJson ? answer.json() : {} }
  }
  const post: BuildsApp['post'] = async (fields, headers = {}) => {
    const form = await encode(fields)
    return await send('POST', '/builds', form.body, { 'content-type': form.type, ...headers })
  }
  const get: BuildsApp['get'] = async (id) => (await send('GET', `/builds/${id}`, undefined, {})).body
  return {
    app,
    dataDir,
    runner,
    lines,
    post,
    get,
    call: async (method, url, body, headers = {}) => await (body === undefined ? send(method, url, undefined, headers) : send(method, url, JSON.stringify(body), { 'content-type': 'application/json', ...headers })),
    async build (fields = {}) {
      const { status, body, text } = await post({ source: SOURCE, ...fields })
      if (status !== 202) throw new Error(`a build answered ${status} ${text}`)
      return String(body['id'])
    },
    async become (id, status) {
      await until(async () => (await get(id))['status'] === status)
      return await get(id)
    },
    files: async () => (await namesBelow(join(dataDir, 'builds'))).filter((name) => !name.endsWith('log')).sort()
  }
}

async function namesBelow (folder: string): Promise<string[]> {
  for (let tries = 0; ; tries++) {
    try {
      return await readdir(folder, { recursive: true })
    } catch (error) {
      // A folder in it may go while it is read.
      if (!hasCode(error, 'ENOENT') || tries > 100) throw error
    }
  }
}

/** A form as a client of fetch sends it. */
export async function encode (fields: Fields): Promise<{ readonly body: Buffer, readonly type: string }> {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'string') form.append(name, value)
    else form.append(name, new Blob([new Uint8Array(value)]), `${name}.file`)
  }
  const response = new Response(form)
  return { body: Buffer.from(await response.arrayBuffer()), type: response.headers.get('content-type') ?? '' }
}
