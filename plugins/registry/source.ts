// What other plugins get from the registry: whether a host name means this server, and a way to pull from it.
import type { ApiKeys, ServerInfo } from '../../core/contracts/services.ts'
import { createGateway, type Gateway } from './gateway.ts'
import type { RegistrySource } from './contract.ts'
import { createLogin, type Login } from './login.ts'
import { Store, type StoreOptions } from './store.ts'

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '[::1]']
// longer than a pull takes; it is revoked when the pull ends
const ACCESS_TTL_MS = 2 * 3_600_000

export interface BuiltInRegistryOptions extends StoreOptions {
  readonly apiKeys: ApiKeys
  readonly server: ServerInfo
  readonly hosts: readonly string[]
  readonly tokenTtlMs: number
}

/** The `registry` service, with the parts that the plugin's routes use. */
export class BuiltInRegistry implements RegistrySource {
  readonly store: Store
  readonly gateway: Gateway
  readonly login: Login
  readonly #options: BuiltInRegistryOptions
  readonly #listening: Promise<void>
  #setListening: () => void = () => undefined
  #isListening = false

  constructor (options: BuiltInRegistryOptions) {
    this.#options = options
    this.store = new Store(options)
    this.gateway = createGateway({ socketPath: () => this.store.socketPath(), log: options.log })
    this.login = createLogin(options.apiKeys, options.tokenTtlMs)
    this.#listening = new Promise((resolve) => { this.#setListening = resolve })
  }

  /** To be called when the server listens: from then on it can be pulled from. */
  listening (): void {
    this.#isListening = true
    this.#setListening()
  }

  isLocal (host: string): boolean {
    if (host === 'localhost' || this.#options.hosts.includes(host)) return true
    if (!this.#isListening) return false
    const own = new URL(this.#options.server.localUrl())
    return host === own.host || LOOPBACK_NAMES.some((name) => host === `${name}:${own.port}`)
  }

  async access (signal: AbortSignal): ReturnType<RegistrySource['access']> {
    // Pulls that an earlier server left begin before this one listens.
    if (!this.#isListening) await unless(signal, this.#listening)
    const { key, revoke } = this.#options.apiKeys.issueEphemeral('image pull', ['image:read'], ACCESS_TTL_MS)
    return { endpoint: new URL(this.#options.server.localUrl()).host, username: 'berth', password: key, revoke }
  }
}

async function unless (signal: AbortSignal, work: Promise<void>): Promise<void> {
  signal.throwIfAborted()
  let stop: () => void = () => undefined
  const aborted = new Promise<never>((_resolve, reject) => {
    stop = () => reject(signal.reason)
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
