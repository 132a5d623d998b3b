// The real server, as a child process on a private folder, for tests that boot real machines.
import { chmod, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Hypeman from '@onkernel/hypeman'
import type { Test } from 'tap'
import { createApi, type Api } from '../../setup/server/api.ts'
import { removeServerFolder, startServer, type ServerOptions, type ServerProcess } from '../../setup/server/process.ts'
import { evidence } from './evidence.ts'
import { seedTemplates } from './prepared-templates.ts'

export interface TestServer {
  readonly url: string
  readonly key: string
  readonly dataDir: string
  readonly folder: string
  readonly logFile: string
  readonly pid: number
  readonly api: Api
  /** the official SDK, which does not repeat calls here, so that a test sees the first answer */
  readonly sdk: Hypeman
  /** Ends the server as a crash would. Its machines go on. */
  kill9 (): Promise<void>
  /** Ends the server in order. */
  stop (): Promise<void>
  /** Starts a server on the same folder; the properties above are then those of the new one. */
  restart (changes?: Partial<ServerOptions>): Promise<void>
}

const USED_ONLY = { enabled: true, spares: 0, quiet: '24h' }
/** On an emulated host with KVM (../emulated-host) the boots that make them would take minutes. */
const usesTemplates = process.env['BERTH_TEST_KVM'] === undefined
/** For tests of boots. */
export const withoutTemplates: Partial<ServerOptions> = { plugins: { instances: { config: { templates: { enabled: false } } } } }

/** Starts a server; the end of the test ends it with everything that it started, and complains of what an orderly end left behind. */
export async function startTestServer (t: Test, options: Partial<ServerOptions> = {}): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-test-'))
  await chmod(folder, 0o711)
  let current: ServerProcess | undefined
  let hasCrashed = false
  const end = async (): Promise<string[]> => {
    await current?.stop()
    return await removeServerFolder(folder)
  }
  const explain = async (): Promise<void> => {
    // What the server had to say goes with its folder.
    if (current !== undefined) console.error(await evidence(current.logFile, current.dataDir))
  }
  // A test that is asked to end has no teardown. It may be asked because it hangs.
  const interrupted = (): void => { void explain().then(end).finally(() => process.exit(1)) }
  process.once('SIGTERM', interrupted)
  process.once('SIGINT', interrupted)
  t.teardown(async () => {
    process.removeListener('SIGTERM', interrupted)
    process.removeListener('SIGINT', interrupted)
    if (!t.passing()) await explain()
    const left = await end()
    if (left.length > 0 && !hasCrashed) throw new Error(`the server left behind: ${left.join('; ')}`)
  })
  if (options.plugins?.['instances']?.config?.['templates'] === undefined && usesTemplates) await seedTemplates(join(folder, 'data'))
  current = await startServer({ folder, logLevel: 'debug', ...withTestDefaults(options) })
  const now = (): ServerProcess => {
    if (current === undefined) throw new Error('the server has not been started')
    return current
  }
  return {
    get url () { return now().url },
    get key () { return now().key },
    get dataDir () { return now().dataDir },
    get logFile () { return now().logFile },
    get pid () { return now().pid },
    get api () { return createApi(now().url, now().key) },
    get sdk () { return new Hypeman({ baseURL: now().url, apiKey: now().key, maxRetries: 0, timeout: 300_000 }) },
    folder,
    kill9: async () => {
      hasCrashed = true
      await now().kill()
    },
    stop: async () => await now().stop(),
    restart: async (changes) => {
      current = await now().restart(changes?.plugins === undefined ? changes : withTestDefaults(changes))
      hasCrashed = false
    }
  }
}

/**
 * Templates that are there are used, and none is made, which would take processors from whatever a test is about; a VM that is kept in standby would do in place of the image that a test is about; and an
 * emulated VM that has waited a second for its processor does not hang.
 * Tests that are about one or the other configure it.
 */
function withTestDefaults (options: Partial<ServerOptions>): Partial<ServerOptions> {
  const { instances, 'hypervisor-qemu': qemu } = options.plugins ?? {}
  return {
    ...options,
    plugins: {
      ...options.plugins,
      instances: { ...instances, config: { templates: USED_ONLY, hotStandby: { enabled: false }, ...instances?.config } },
      'hypervisor-qemu': { ...qemu, config: { heartbeatDeadline: '15s', ...qemu?.config } }
    }
  }
}
