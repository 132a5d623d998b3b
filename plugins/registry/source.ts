// The registry for other plugins: which host names mean this server, access for pulls, and channels without a key.
import type { ApiKeys, EventBus, ServerInfo } from '../../core/contracts/services.ts'
import type { DiskSpace } from '../../core/fs/disk-space.ts'
import { unlessAborted } from '../../core/jobs/unless-aborted.ts'
import type { ProcessRegister } from '../../core/process/register.ts'
import { openChannel } from './channel.ts'
import type { RegistryChannel, RegistryGrant, RegistrySource } from './contract.ts'
import { createGateway, type Gateway } from './gateway.ts'
import { createLogin, type Login } from './login.ts'
import { createRelay, type Relay } from './relay.ts'
import { Store, type StoreOptions } from './store.ts'
import { Uploads } from './uploads.ts'

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]']
const PULL = { name: 'image pull', scopes: ['image:read'] }
const PUSH = { name: 'image push', scopes: ['image:read', 'image:write'] }
// longer than a pull or push takes; it is revoked when that ends
const ACCESS_TTL_MS = 2 * 3_600_000

export interface BuiltInRegistryOptions extends StoreOptions {
  readonly apiKeys: ApiKeys
  readonly events: EventBus
  readonly disk: DiskSpace
  readonly server: ServerInfo
  readonly processes: ProcessRegister
  readonly hosts: readonly string[]
  readonly tokenTtlMs: number
  readonly maxUploadBytes: number
}

/** The `registry` service, with the parts that the plugin's routes use. */
export class BuiltInRegistry implements RegistrySource {
  readonly store: Store
  readonly gateway: Gateway
  readonly uploads: Uploads
  readonly login: Login
  readonly relay: Relay
  readonly #options: BuiltInRegistryOptions
  readonly #listening: Promise<void>
  #setListening: () => void = () => undefined
  #isListening = false
  #grants = 0

  constructor (options: BuiltInRegistryOptions) {
    this.#options = options
    this.store = new Store(options)
    this.gateway = createGateway({ store: this.store, log: options.log })
    this.uploads = new Uploads({ disk: options.disk, store: this.store, log: options.log, maxBytes: options.maxUploadBytes })
    this.relay = createRelay({ gateway: this.gateway, events: options.events, log: options.log, uploads: this.uploads })
    this.login = createLogin(options.apiKeys, options.tokenTtlMs)
    this.#listening = new Promise((resolve) => { this.#setListening = resolve })
  }

  /** To be called when the server listens: from then on clients can pull. */
  listening (): void {
    this.#isListening = true
    this.#setListening()
  }

  isLocal (host: string): boolean {
    if (host === 'localhost' || this.#options.hosts.includes(host)) return true
    return this.#isListening && this.names().includes(host)
  }

  /** `host:port` of this server. */
  host (): string {
    return new URL(this.#options.server.localUrl()).host
  }

  names (): readonly string[] {
    const own = new URL(this.#options.server.localUrl())
    return [...new Set([own.host, ...LOOPBACK_NAMES.map((name) => `${name}:${own.port}`), 'localhost', ...this.#options.hosts])]
  }

  open (grant: RegistryGrant): RegistryChannel {
    const { log, events } = this.#options
    // A gateway of its own, which is closed with the channel.
    const gateway = createGateway({ store: this.store, log })
    const { uploads } = this
    const owner = `grant ${++this.#grants}`
    return openChannel({ grant, gateway, relay: createRelay({ gateway, events, log, uploads }), log, owner, revoked: () => { uploads.drop(owner) }, host: () => this.host() })
  }

  async access (signal: AbortSignal, purpose: 'read' | 'write' = 'read'): ReturnType<RegistrySource['access']> {
    // Pulls of an earlier server are resumed before this one listens.
    if (!this.#isListening) await unlessAborted(signal, this.#listening)
    const { name, scopes } = purpose === 'read' ? PULL : PUSH
    const { key, revoke } = this.#options.apiKeys.issueEphemeral(name, scopes, ACCESS_TTL_MS)
    return { endpoint: this.host(), username: 'berth', password: key, revoke }
  }
}
