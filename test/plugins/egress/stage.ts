// The egress plugin's service with a real network and real proxies in namespaces of their own, as one server after the other would have it.
import { chmod } from 'node:fs/promises'
import type { Test } from 'tap'
import { pino } from 'pino'
import type { Secrets } from '../../../core/contracts/services.ts'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { createTracing } from '../../../core/tracing/tracing.ts'
import { createSecrets } from '../../../core/secrets/secrets.ts'
import { createProcessRegister } from '../../../core/process/register.ts'
import { AuthorityMaker } from '../../../plugins/egress/authority.ts'
import type { EgressSpec } from '../../../plugins/instances/egress/contract.ts'
import { ControlClient } from '../../../plugins/egress/control/client.ts'
import type { EgressConfig } from '../../../plugins/egress/manifest.ts'
import { ManagedProxy } from '../../../plugins/egress/process/managed-proxy.ts'
import { pathsOf, type EgressPaths } from '../../../plugins/egress/process/paths.ts'
import type { ProxyProcess } from '../../../plugins/egress/process/proxy-process.ts'
import { EgressRepository } from '../../../plugins/egress/repository.ts'
import { Egress } from '../../../plugins/egress/service.ts'
import type { Networking } from '../../../plugins/networking/service.ts'
import { configOf } from './config.ts'
import { createWorld, type World } from '../networking/world.ts'
import { eventually } from '../../helpers/eventually.ts'

const MIGRATIONS = new URL('../../../plugins/egress/migrations/', import.meta.url)
const HOST = 'host-a'

export interface Server {
  readonly egress: Egress
  readonly proxy: ProxyProcess
  readonly repository: EgressRepository
  readonly log: () => string
  /** As if it had been killed: the proxy goes on. */
  crash (): Promise<void>
  /** As at the end of a server in good order. */
  stop (): Promise<void>
}

export interface EgressStage {
  readonly world: World
  readonly network: Networking
  readonly secrets: Secrets
  readonly paths: EgressPaths
  readonly client: ControlClient
  /** A server on this data folder. `adopt` has been called for nobody unless `adopted` is false. */
  server (options?: { readonly config?: Partial<EgressConfig>, readonly adopted?: boolean, readonly client?: ControlClient, readonly proxy?: (real: ProxyProcess) => ProxyProcess }): Promise<Server>
}

export async function setStage (t: Test, networking: Parameters<World['open']>[0] = {}): Promise<EgressStage> {
  const world = await createWorld(t)
  // Made for its owner alone; the proxy has a user of its own.
  await chmod(world.folder, 0o711)
  const network = await world.open(networking)
  const paths = pathsOf(world.folder)
  const secrets = createSecrets(Buffer.alloc(32, 7))
  const client = new ControlClient(paths.controlSocket)
  return {
    world,
    network,
    secrets,
    paths,
    client,
    async server ({ config = {}, adopted = true, client: own = client, proxy: wrap = (real: ProxyProcess) => real } = {}) {
      const database = await world.openDatabase()
      await migratePlugin(database, 'egress', MIGRATIONS)
      const lines: string[] = []
      const log = pino({ level: 'debug' }, { write: (line: string) => { lines.push(line) } })
      const repository = new EgressRepository(database, HOST)
      const proxy = wrap(new ManagedProxy({ config: configOf(config), dataDir: world.folder, paths, network, commands: world.commands, processes: createProcessRegister(), client, log }))
      const egress = new Egress({ repository, network, config: configOf(config), tracing: createTracing(), secrets, proxy, client: own, authority: new AuthorityMaker(world.commands), log })
      await egress.open()
      if (adopted) await egress.adopt([])
      let isOver = false
      const end = async (how: () => Promise<void>): Promise<void> => {
        if (isOver) return
        isOver = true
        await how()
        await database.destroy()
      }
      const server: Server = {
        egress,
        proxy,
        repository,
        log: () => lines.join(''),
        crash: async () => { await end(async () => { await egress.abandon() }) },
        stop: async () => { await end(async () => { await egress.close(true) }) }
      }
      world.later(server.stop)
      return server
    }
  }
}

/** A policy with one credential. */
export function specOf (server: Server, value = 'real-value-of-a-secret', mode: EgressSpec['mode'] = 'all'): EgressSpec {
  return server.egress.prepare({
    mode,
    credentials: { API_KEY: { source: { env: 'API_KEY' }, inject: [{ hosts: ['api.good.test'], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } },
    env: { API_KEY: value }
  })
}

/** Waits until it is so; what it asks may not be there meanwhile. */
export async function until (isSo: () => Promise<boolean>): Promise<void> {
  let last: unknown
  await eventually('it is so', async () => {
    last = await isSo().catch((error: unknown) => error)
    return last === true
  }, { pollMs: 10, explain: () => String(last) })
}
