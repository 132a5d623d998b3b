// The services that core itself puts in the container. Types only; the comment of each names the file of its implementation.
import type { Knex } from 'knex'
import type { Logger as PinoLogger } from 'pino'
import type { Registry } from 'prom-client'
import type { DeclaredError } from '../errors/define.ts'
import type { DiskSpace } from '../fs/disk-space.ts'
import type { RecentLog } from '../logging/recent.ts'
import type { Tracing } from '../tracing/tracing.ts'

export type Logger = PinoLogger

/** Domain events, by name. Plugins augment it in their `contract.ts`. */
// eslint-disable-next-line @typescript-eslint/no-empty-object-type
export interface DomainEvents {}

/** core/jobs/events.ts: in-process publish and subscribe. A listener that throws is logged and stops nobody. */
export interface EventBus {
  emit<E extends keyof DomainEvents> (name: E, event: DomainEvents[E]): void
  on<E extends keyof DomainEvents> (name: E, listener: (event: DomainEvents[E]) => void): () => void
}

/** core/jobs/queue.ts: work with bounded concurrency, first in first out. */
export interface JobQueue {
  /** Runs `job` when its turn comes. An id that is already queued or running returns the promise of that job. */
  push<T> (id: string, job: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** 1 for the next to run; `undefined` when it is running or unknown. */
  position (id: string): number | undefined
  /** Takes a waiting job out, or aborts the signal of a running one. */
  cancel (id: string): void
  /** Cancels everything and waits until what runs has ended. */
  close (): Promise<void>
}
export interface Jobs { queue (name: string, options: { concurrency: number }): JobQueue }

export interface RunOptions {
  readonly cwd?: string
  /** added to a minimal environment (PATH, HOME, LANG=C) */
  readonly env?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
  /** `ms`; the process is killed and the call fails after it. Absent: an hour */
  readonly timeoutMs?: number
  /** bytes written to the command's standard input, which is then closed */
  readonly input?: string | Buffer
  /** strings replaced by `***` in anything that is reported */
  readonly secrets?: readonly string[]
}
export interface RunResult { readonly stdout: string, readonly stderr: string }

/** core/process/run.ts: runs one host command to its end. Fails with `HostCommandFailed` (command, exit code, last lines of stderr) or `HostCommandMissing` (the Debian package to install). */
export interface HostCommands {
  run (file: string, args: readonly string[], options?: RunOptions): Promise<RunResult>
}

/** core/process/identity.ts: a process that can be told apart from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number
  /** field 22 of /proc/<pid>/stat, clock ticks since boot */
  readonly startTicks: string
  /** /proc/sys/kernel/random/boot_id */
  readonly bootId: string
}

export interface ApiKeyPrincipal {
  readonly id: string
  readonly name: string
  /** `*` or scopes such as `instance:write` */
  readonly scopes: readonly string[]
  /** repositories that it may write images to, in the form of core/auth/repositories.ts; absent: all */
  readonly repositories?: readonly string[]
  /** ms since the epoch; absent: never */
  readonly expiresAt?: number
  /** what is stored in place of `id`, where that is not the key's own; core/auth/durable-id.ts reads it */
  readonly durableId?: string
  /** id of the key that this one, a short-lived token, stands for: it is counted for that key, and what is under way with it ends with that key */
  readonly owner?: string
}
/** core/auth/keys.ts */
export interface ApiKeys {
  /** The principal of a presented key, or `undefined` when it is unknown, expired or revoked. */
  verify (key: string): Promise<ApiKeyPrincipal | undefined> | ApiKeyPrincipal | undefined
  /** The same for a key of which only the hash is kept; core/auth/key-text.ts makes it. */
  verifyHash (hash: string): Promise<ApiKeyPrincipal | undefined> | ApiKeyPrincipal | undefined
  /** The current principal of the key with this id (that of `durableIdOf`), for work that goes on after the request that the key was presented with; `undefined` when the key is unknown, expired or revoked. */
  current (id: string): Promise<ApiKeyPrincipal | undefined>
  /** A key valid only in this process and for at most `ttlMs`; never stored. @param owner the key that it stands for, if it does for one */
  issueEphemeral (name: string, scopes: readonly string[], ttlMs: number, repositories?: readonly string[], owner?: ApiKeyPrincipal): { readonly id: string, readonly key: string, revoke (): void }
  allows (principal: ApiKeyPrincipal, scope: string): boolean
  /** Whether the key's repositories allow writing images to a repository (`host/path`, `localhost/path` for the built-in registry). The scope is checked elsewhere. */
  mayWrite (principal: ApiKeyPrincipal, repository: string): boolean
  /** Calls `then` once when the key has been revoked or has expired: at once when it was revoked here, else within 5 seconds. Of a token: once the key that it stands for has ended, also when the token expired before. Returns the function that cancels this. */
  whenEnded (principal: ApiKeyPrincipal, then: () => void): () => void
}

export interface ServerInfo {
  /** absolute path of the data folder */
  readonly dataDir: string
  /** stable id of this host, stored in the data folder */
  readonly hostId: string
  /** of the program */
  readonly version: string
  /** the version of the API, which is counted separately from the program's */
  readonly apiVersion: string
  /** `http://host:port` at which this process can be reached from the same host; known once it listens */
  readonly localUrl: () => string
  /** whether VMs end with the server (`server.stopInstancesOnExit`) */
  readonly stopInstancesOnExit: boolean
}

/**
 * core/secrets/: secrets at rest, by AES-256-GCM under a key that is made at the first start (`<data>/keys/secrets.key`, mode 0600).
 */
export interface Secrets {
  /** @param purpose what it is sealed for, such as `egress`: it cannot be opened for another purpose */
  seal (purpose: string, secret: string): string
  /** @throws `secret_unavailable` when it was sealed under another key or for another purpose, or was changed; the error says nothing of the text */
  open (purpose: string, sealed: string): string
}

declare module '../plugins/manifest.ts' {
  interface Cradle {
    readonly log: Logger
    readonly database: Knex
    readonly events: EventBus
    readonly jobs: Jobs
    readonly commands: HostCommands
    readonly disk: DiskSpace
    readonly apiKeys: ApiKeys
    readonly metrics: Registry
    readonly server: ServerInfo
    readonly secrets: Secrets
    readonly recentLog: RecentLog
    readonly tracing: Tracing
  }
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** the scope that a key needs for this route, or `ANY_KEY`; `null` for a route that needs no key. Core refuses to mount a route without one. */
    scope?: string | null
    /** answers are remembered under `Idempotency-Key` */
    idempotent?: boolean
    /** no body means an empty object */
    optionalBody?: boolean
    /** errors that this route may answer with, besides those that core/http/route-errors.ts adds to every route of its kind */
    errors?: readonly DeclaredError[]
    /** whether the route may also answer with errors of the plugins that this one calls */
    passesErrors?: boolean
    /** set by core, from `errors` and the shared ones */
    errorCodes?: Readonly<Record<string, readonly string[]>>
    /** for the document: the path to show where the router's has a `*` */
    documentedAs?: string
    /** path of the resource that a POST may replace though its own path does not name one: `/images/*` */
    replaces?: string
    /** for the document: the media type of an answer that is a stream */
    produces?: string
    /** for a route that only reads memory and writes nothing to the log: what it calls makes no spans, its trace is one span that is made at the end, and only an error has `x-trace-id` */
    oneSpan?: boolean
    /** for the document: the media types of a body that is a stream */
    accepts?: readonly string[]
  }
  interface FastifyRequest {
    principal: ApiKeyPrincipal | null
  }
}
