// For the tests of a plugin, `import { startKernel } from 'berth/plugin/testing'`: a server with that plugin and no built-in one, in a folder and on a free port of its own. It assumes no test framework.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { buildApp } from '../app.ts'
import { compileAll } from '../http/compile-once.ts'
import type { Plugin } from '../plugins/manifest.ts'

export interface TestAnswer {
  readonly status: number
  readonly headers: Headers
  /** parsed when it is JSON, else the text; undefined for an empty body */
  readonly body: unknown
}

export interface TestRequest {
  readonly method?: string
  /** sent as JSON */
  readonly body?: unknown
  /** the scope of the key for this request, such as `greeting:read`; absent: a key with full access */
  readonly scopes?: readonly string[]
  /** without a key */
  readonly anonymous?: boolean
}

export interface TestKernel {
  /** `http://127.0.0.1:PORT` */
  readonly url: string
  /** a key with full access */
  readonly adminKey: string
  readonly dataDir: string
  /** each line that was logged, parsed */
  readonly log: ReadonlyArray<Readonly<Record<string, unknown>>>
  request (path: string, request?: TestRequest): Promise<TestAnswer>
  /** Ends the server and removes its folder. Idempotent. */
  stop (): Promise<void>
}

export interface KernelOptions {
  /** the configuration below `plugins.<id>.config`, by id */
  readonly config?: Readonly<Record<string, unknown>>
  /** a folder of the caller's, to start several kernels on one after the other; `stop` leaves it. Absent: a new one, which `stop` removes */
  readonly dataDir?: string
}

const ADMIN_KEY = 'the-admin-key-of-tests'
const NO_BUILT_INS = pathToFileURL('/nonexistent/')

/**
 * @param plugins the plugin under test, and stand-ins that provide what it requires
 * @throws Error that names everything wrong with manifests and configuration, or the plugin that did not start
 */
export async function startKernel (plugins: readonly Plugin[], { config = {}, dataDir }: KernelOptions = {}): Promise<TestKernel> {
  const folder = dataDir ?? await mkdtemp(join(tmpdir(), 'berth-plugin-test-'))
  const removeFolder = async (): Promise<void> => { if (dataDir === undefined) await rm(folder, { recursive: true, force: true }) }
  const log: Array<Record<string, unknown>> = []
  try {
    const app = await buildApp({
      server: { dataDir: folder, listen: '127.0.0.1:0', apiKey: ADMIN_KEY, metrics: { enabled: false } },
      plugins: Object.fromEntries(Object.entries(config).map(([id, of]) => [id, { config: of }]))
    }, { environment: {}, builtIns: NO_BUILT_INS, plugins, logStream: { write: (line) => { log.push(JSON.parse(line)) } } })
    const stop = async (): Promise<void> => {
      await app.stop()
      await removeFolder()
    }
    try {
      await app.start()
      // A server compiles a schema at its first use; a test should find an invalid one.
      compileAll()
    } catch (error) {
      await stop()
      throw error
    }
    return { url: app.address(), adminKey: ADMIN_KEY, dataDir: folder, log, request: requestsTo(app.address()), stop }
  } catch (error) {
    await removeFolder()
    throw error
  }
}

function requestsTo (url: string): TestKernel['request'] {
  const send = async (path: string, key: string | undefined, { method = 'GET', body }: TestRequest): Promise<TestAnswer> => {
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { ...key === undefined ? {} : { authorization: `Bearer ${key}` }, ...body === undefined ? {} : { 'content-type': 'application/json' } },
      ...body === undefined ? {} : { body: JSON.stringify(body) }
    })
    return { status: answer.status, headers: answer.headers, body: read(await answer.text(), answer.headers.get('content-type')) }
  }
  const keyWith = async (scopes: readonly string[]): Promise<string> => {
    const { status, body } = await send('/keys', ADMIN_KEY, { method: 'POST', body: { name: `test-${scopes.join('-').replaceAll(':', '-')}`, scopes } })
    if (status !== 201 || typeof body !== 'object' || body === null || !('key' in body) || typeof body.key !== 'string') throw new Error(`a key for ${scopes.join(', ')} was refused: ${JSON.stringify(body)}`)
    return body.key
  }
  return async (path, request = {}) => {
    const { anonymous = false, scopes } = request
    return await send(path, anonymous ? undefined : scopes === undefined ? ADMIN_KEY : await keyWith(scopes), request)
  }
}

function read (text: string, type: string | null): unknown {
  if (text === '') return undefined
  return type?.includes('json') === true ? JSON.parse(text) : text
}
