// What the built-in registry offers other plugins. Types only.
import type { Duplex } from 'node:stream'

/** The repositories that a connection may use. */
export interface RegistryGrant {
  readonly read: 'all' | readonly string[]
  /** includes reading; deleting is never allowed */
  readonly write: readonly string[]
  /** repositories whose pushes are not announced (`registry.pushed`): no image is made of a cache */
  readonly quiet?: readonly string[]
}

/** The registry for a client that is identified by its connection, and so needs no key. */
export interface RegistryChannel {
  /** Serves the registry's protocol (`/v2/`, plain HTTP/1.1) on a connection until either side ends it; every other path is 404. */
  serve (connection: Duplex): void
  /** From now on nothing is served, and running requests end. Idempotent. */
  revoke (): void
}

export interface RegistrySource {
  /** A channel with exactly these rights. Any other repository is `DENIED` (403), whether it exists or not. */
  open (grant: RegistryGrant): RegistryChannel
  /** Every `host` or `host:port` of this registry, that of `server.localUrl` first. Known once the server listens. */
  names (): readonly string[]
  /** whether `host` (the first part of a normalised reference) is this server's own `/v2` */
  isLocal (host: string): boolean
  /**
   * `host:port` to pull from, or also to push to (`purpose` `write`), plain HTTP on loopback, and a short-lived key that may do only that; must be revoked when done.
   * Waits until the server listens, or rejects when `signal` aborts.
   */
  access (signal: AbortSignal, purpose?: 'read' | 'write'): Promise<{ readonly endpoint: string, readonly username: string, readonly password: string, revoke (): void }>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly registry: RegistrySource
  }
}

declare module '../../core/contracts/services.ts' {
  interface DomainEvents {
    /** A manifest has been pushed to the built-in registry. */
    'registry.pushed': {
      readonly repository: string
      /** tag, or digest */
      readonly reference: string
      readonly digest: string
      /** the Host header of the client; the server's own name for one whose key may not write to the repository that this would be elsewhere */
      readonly host: string
      /** The client gets its answer only after this work, so that its next request finds the result. */
      readonly waitUntil: (work: Promise<unknown>) => void
    }
  }
}
