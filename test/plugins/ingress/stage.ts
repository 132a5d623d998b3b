// The plugin's service with a real nginx and a real network, as one server after the other would have it. A program in a namespace behind a real TAP stands for a VM.
import { existsSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { once } from 'node:events'
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { pino } from 'pino'
import { Registry } from 'prom-client'
import type { Test } from 'tap'
import { migratePlugin } from '../../../core/db/migrate.ts'
import { createJobs } from '../../../core/jobs/queue.ts'
import { createSecrets } from '../../../core/secrets/secrets.ts'
import { BerthError } from '../../../core/errors/define.ts'
import { NotFound } from '../../../core/errors/common.ts'
import { createProcessRegister } from '../../../core/process/register.ts'
import { compose } from '../../../plugins/ingress/compose.ts'
import type { AcmeConfig, IngressConfig } from '../../../plugins/ingress/manifest.ts'
import { pathsOf, type IngressPaths } from '../../../plugins/ingress/process/paths.ts'
import type { CreateIngress } from '../../../plugins/ingress/schemas.ts'
import type { Ingresses } from '../../../plugins/ingress/service.ts'
import type { InstanceFacts } from '../../../plugins/instances/contract.ts'
import type { Networking } from '../../../plugins/networking/service.ts'
import { freePort } from '../../helpers/free-port.ts'
import { createWorld, skipReason as noNetworks, type Machine, type World } from '../networking/world.ts'

const MIGRATIONS = new URL('../../../plugins/ingress/migrations/', import.meta.url)
const TARGET = fileURLToPath(new URL('programs/target.js', import.meta.url))

export function skipReason (): string | false {
  return noNetworks() || (existsSync('/usr/sbin/nginx') ? false : 'the command nginx is missing; install the package nginx')
}

export interface Server {
  readonly ingresses: Ingresses
  readonly log: () => string
  /** as Prometheus would read them */
  readonly figures: () => Promise<string>
  /** As if it had been killed: nginx goes on. */
  crash (): Promise<void>
  stop (): Promise<void>
}

export interface Answer { readonly status: number, readonly headers: IncomingHttpHeaders, readonly body: string }
export interface Ask { readonly host?: string, readonly path?: string, readonly method?: string, readonly headers?: Record<string, string | string[]>, readonly body?: string, readonly tls?: string, readonly ca?: string }

export interface ServerChanges {
  readonly limits?: Partial<IngressConfig['limits']>
  readonly certificates?: { readonly files?: IngressConfig['certificates']['files'], readonly acme?: Partial<AcmeConfig> }
}

export class Stage {
  readonly world: World
  readonly network: Networking
  readonly http: number
  readonly https: number
  readonly paths: IngressPaths
  readonly instances = new Map<string, InstanceFacts>()

  /** what was taken and given back, in order */
  readonly leases: string[] = []
  /** how often each was woken */
  readonly woken: string[] = []
  /** as the plugin instances does it: what runs is there, what sleeps is restored, what is stopped stays so */
  async wake (id: string): Promise<{ address: string | undefined }> {
    const facts = this.instances.get(id)
    if (facts === undefined) throw NotFound('instance', id)
    if (facts.state === 'Stopped') throw new BerthError('cannot_be_woken', 'unavailable', `instance ${facts.name} cannot be woken: it is Stopped`)
    if (facts.state === 'Standby') {
      this.woken.push(facts.name)
      this.instances.set(id, { ...facts, state: 'Running' })
    }
    return { address: this.network.addressOf(id)?.ip }
  }

  #ingresses: Ingresses | undefined

  constructor (world: World, network: Networking, http: number, https: number) {
    this.world = world
    this.network = network
    this.http = http
    this.https = https
    this.paths = pathsOf(world.folder)
  }

  /** A server on this data folder. */
  async server ({ limits, certificates }: ServerChanges = {}): Promise<Server> {
    const { world, network } = this
    const database = await world.openDatabase()
    await migratePlugin(database, 'ingress', MIGRATIONS)
    const lines: string[] = []
    const log = pino({ level: 'debug' }, { write: (line: string) => { lines.push(line) } })
    const config: IngressConfig = {
      listen: { address: '127.0.0.1', http: [this.http], https: [this.https] }, limits: { workers: 1, connections: 512, connectionsPerClient: 256, idle: '1h', ...limits }, log: { maxFileSize: '4MB' },
      certificates: { files: certificates?.files ?? [], acme: { acceptTerms: true, hosts: [], challenge: 'http-01', dnsResolvers: [], waitForRecord: true, timeout: '2m', ...certificates?.acme } }
    }
    const find = (ref: string): InstanceFacts => {
      const found = [...this.instances.values()].find(({ id, name }) => id === ref || name === ref)
      if (found === undefined) throw NotFound('instance', ref)
      return found
    }
    const metrics = new Registry()
    const ingresses = compose({
      log, database, commands: world.real, jobs: createJobs(), processes: createProcessRegister(), metrics, network, secrets: createSecrets(Buffer.alloc(32, 7)),
      leases: { take: (id, reason) => { this.leases.push(`${id} ${reason}`); return { release: () => { this.leases.push(`${id} released`) } } } },
      waking: { wake: async (id) => await this.wake(id) },
      instanceCopies: { find }, server: { dataDir: world.folder, hostId: 'host-a' }
    }, config)
    this.#ingresses = ingresses
    let isOver = false
    const end = async (ending: boolean): Promise<void> => {
      if (isOver) return
      isOver = true
      await ingresses.close(ending)
      await database.destroy()
    }
    world.later(async () => { await end(true) })
    await ingresses.begin(AbortSignal.timeout(60_000))
    return { ingresses, log: () => lines.join(''), figures: async () => await metrics.metrics(), crash: async () => { await end(false) }, stop: async () => { await end(true) } }
  }

  /** An ingress of the server that is there now. */
  async create (ingress: CreateIngress): Promise<void> {
    await this.#ingresses?.create(ingress)
  }

  /** An instance with a program on port 8080. */
  async instance (name: string, state: InstanceFacts['state'] = 'Running'): Promise<Machine> {
    const { world, network } = this
    const id = `${name}000000000000000000000000`.slice(0, 24)
    const address = await network.allocate(id)
    const port = await network.plug(id, undefined, { vcpus: 1 }, 'none')
    const machine = await world.machine(port, address)
    const child = world.child(machine.namespace, [process.execPath, TARGET, '8080', name])
    await once(createInterface({ input: child.stdout }), 'line')
    this.instances.set(id, { id, name, state, hypervisor: 'qemu', imageDigest: 'sha256:x', isWorker: false })
    return machine
  }

  async ask ({ host = 'web.test', path = '/', method = 'GET', headers = {}, body, tls, ca }: Ask): Promise<Answer> {
    const options = { host: '127.0.0.1', port: tls === undefined ? this.http : this.https, path, method, agent: false, headers: { host, ...headers }, ...tls === undefined ? {} : { servername: tls, ca } } as const
    const request = tls === undefined ? httpRequest(options) : httpsRequest(options)
    request.end(body)
    const [response] = await once(request, 'response') as [IncomingMessage]
    return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response) }
  }
}

export async function setStage (t: Test): Promise<Stage> {
  const world = await createWorld(t)
  // Made for its owner alone; nginx has a user of its own.
  await chmod(world.folder, 0o711)
  const network = await world.open()
  const [http = 0, https = 0] = await Promise.all([1, 2].map(async () => await freePort('127.0.0.1')))
  return new Stage(world, network, http, https)
}
