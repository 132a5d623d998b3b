// The real application with the instances plugin on a scripted host.
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { buildApp, type App } from '../../../core/app.ts'
import type { Plugin } from '../../../core/plugins/manifest.ts'
import { plugin } from '../../../plugins/instances/index.ts'
import { ADMIN_KEY, noBuiltIns } from '../../core/bare-app.ts'
import { ScriptedHost } from './scripted.ts'

export interface Answer { readonly status: number, readonly body: Record<string, unknown>, readonly headers: Record<string, unknown>, readonly text: string }

export interface TestApp {
  readonly app: App
  readonly dataDir: string
  readonly host: ScriptedHost
  call (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', url: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>
  /** creates an instance and returns its id */
  make (name: string, fields?: Record<string, unknown>): Promise<string>
  waitFor (ref: string, state: string): Promise<Answer>
}

export async function temporaryData (t: Test): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-instances-test-'))
  // as every data folder must be: VMs run as users of their own
  await chmod(folder, 0o711)
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  return folder
}

export interface StartOptions {
  readonly host?: ScriptedHost
  readonly dataDir?: string
  readonly config?: Record<string, unknown>
  readonly server?: Record<string, unknown>
  readonly listen?: boolean
  readonly lines?: Record<string, unknown>[]
  /** told each line of the log, also the least important ones, at the moment at which it is written */
  readonly onLine?: (line: Record<string, unknown>) => void
  /** beside the instances plugin and the host */
  readonly plugins?: readonly Plugin[]
  /** the configuration of those */
  readonly sections?: Record<string, unknown>
}

/** Builds and starts it; it is stopped after the test. A host and a folder that are given again are taken up again. */
export async function startApp (t: Test, options: StartOptions = {}): Promise<TestApp> {
  const host = options.host ?? new ScriptedHost()
  const dataDir = options.dataDir ?? join(await temporaryData(t), 'data')
  const app = await buildApp({
    // Short, as a timer keeps a stopped application in memory for so long, and a process with much memory is slow to start another.
    server: { dataDir, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { listen: '127.0.0.1:0' }, drainTimeout: '2s', ...options.server },
    ...options.onLine === undefined ? {} : { log: { level: 'debug' } },
    plugins: { instances: { config: { memoryFiles: true, templates: { enabled: false }, hotStandby: { enabled: false }, ...options.config } }, ...options.sections }
  }, {
    environment: {},
    builtIns: noBuiltIns,
    folder: dataDir,
    plugins: [plugin, ...host.plugins, ...options.plugins ?? []],
    logStream: {
      write (line) {
        options.lines?.push(JSON.parse(line))
        options.onLine?.(JSON.parse(line))
      }
    }
  })
  t.teardown(async () => { await app.stop() })
  await app.start({ listen: options.listen ?? false })
  const call: TestApp['call'] = async (method, url, body, headers = {}) => {
    const answer = await app.http.inject({
      method,
      url,
      headers: { authorization: `Bearer ${ADMIN_KEY}`, ...headers },
      ...(body === undefined ? {} : { payload: JSON.stringify(body), headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json', ...headers } })
    })
    const isJson = String(answer.headers['content-type']).includes('json')
    return { status: answer.statusCode, headers: answer.headers, text: answer.body, body: isJson ? answer.json() : {} }
  }
  return {
    app,
    dataDir,
    host,
    call,
    async make (name, fields = {}) {
      const { status, body, text } = await call('POST', '/instances', { name, image: 'test', overlay_size: '32MB', ...fields })
      if (status !== 201) throw new Error(`create of ${name} answered ${status} ${text}`)
      return String(body['id'])
    },
    waitFor: async (ref, state) => await call('GET', `/instances/${ref}/wait?state=${state}&timeout=5s`)
  }
}
