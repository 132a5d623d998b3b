// What other plugins may know of the built-in registry. Types only.

export interface RegistrySource {
  /** whether `host` (the first part of a normalised reference) names this server's own `/v2` */
  isLocal (host: string): boolean
  /** `host:port` to pull from, plain HTTP on loopback, and a short-lived key that may do only that; revoke it when done. Waits until the server listens, or rejects when `signal` aborts. */
  access (signal: AbortSignal): Promise<{ readonly endpoint: string, readonly username: string, readonly password: string, revoke (): void }>
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
