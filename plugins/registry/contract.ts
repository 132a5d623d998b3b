// What other plugins may know of the built-in registry. Types only.
import type { Duplex } from 'node:stream'

/** What a connection may do, by repository. */
export interface RegistryGrant {
  readonly read: 'all' | readonly string[]
  /** includes reading them; nobody deletes */
  readonly write: readonly string[]
  /** those of which pushes are not announced (`registry.pushed`): no image is made of a cache */
  readonly quiet?: readonly string[]
}

/** The registry for somebody who is known by the connection itself, and so needs no key. */
export interface RegistryChannel {
  /** Serves the registry's protocol (`/v2/`, plain HTTP/1.1) on a connection until either side ends it; every other path is 404. */
  serve (connection: Duplex): void
  /** From now on nothing is served, and what is under way ends. Idempotent. */
  revoke (): void
}

export interface RegistrySource {
  /** A way in with these rights alone. A repository outside of them is `DENIED` (403), whether it exists or not. */
  open (grant: RegistryGrant): RegistryChannel
  /** Every `host` or `host:port` that names this registry, the one of `server.localUrl` first. Known once the server listens. */
  names (): readonly string[]
  /** whether `host` (the first part of a normalised reference) names this server's own `/v2` */
  isLocal (host: string): boolean
  /**
   * `host:port` to pull from, or to push to as well (`purpose` `write`), plain HTTP on loopback, and a short-lived key that may do only that; revoke it when done.
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
      /** the Host that the client wrote */
      readonly host: string
      /** The client hears of its success only after this work, so that what it does next finds the result. */
      readonly waitUntil: (work: Promise<unknown>) => void
    }
  }
}
