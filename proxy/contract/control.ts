// The contract between berth-egress and the server. Types only: the proxy is a program of its own and imports nothing of the server.
//
// The server speaks HTTP/1.1 with JSON over the proxy's control socket (a unix socket, mode 0600, of the proxy's user):
//   PUT  /policy            body PolicyRevision → 200 {"revision": n} once it is enforced for every request from then on; 400 with the place of the fault,
//                           409 when it is older than the one that is enforced. Requests that are under way with an older value are ended first (see `PolicyRevision`).
// PATCH /policy           body PolicyChange → the same; 409 also when another revision than its `base` is enforced: the server must then PUT the whole revision. A proxy
//                         that does not know PATCH yet answers 404, and a server that does not know it yet always sends the whole revision.
//   GET  /policy            → 200 {"revision": n | null, "vms": count}; never a value
//   GET  /ranges            → 200 OwnRanges; 404 of an older proxy
//   GET  /audit?vm=ID&after=SEQ&limit=N  → 200 {"entries": AuditEntry[], "next": SEQ}
// GET  /traces          → 200 {"entries": TracedEntry[]}: the requests that ended since the last GET /traces, as far as there was room for them
//   GET  /ca                → 200 the CA certificate as PEM
//   GET  /metrics           → 200 Prometheus text
//   GET  /health            → 200 {"status": "ok"} once it listens and has a policy, else 503
import type { MediatedMode } from './modes.ts'

/** Everything that the proxy enforces, at once. Whatever it does not contain is not allowed. */
export interface PolicyRevision {
  /** grows with each change; kept by the server over its restarts */
  readonly revision: number
  /** addresses and networks that no guest may reach now, in addition to those of the configuration: the host's own, which the proxy's namespace does not show */
  readonly denied?: readonly string[]
  /** present while the server takes traces */
  readonly tracing?: TracingPolicy
  readonly vms: readonly VmPolicy[]
}

export interface TracingPolicy {
  /** whether a guest's `traceparent` and `tracestate` go on to origins */
  readonly passTraceparent: boolean
}

/** The differences from the revision `base`. VMs that it does not name keep their policy, and `tracing` stays as it is. */
export interface PolicyChange {
  /** the revision that the proxy must enforce when the change arrives */
  readonly base: number
  readonly revision: number
  /** absent: as before */
  readonly denied?: readonly string[]
  /** VMs that are new, or now have another policy or address */
  readonly vms: readonly VmPolicy[]
  /** ids of VMs that have no policy any more, and so no way out */
  readonly gone: readonly string[]
}

export interface VmPolicy {
  /** the instance */
  readonly id: string
  /** IPv4 address that the VM sends from; no two VMs have the same one */
  readonly address: string
  /**
   * Changes when the address goes to another VM or the VM becomes another machine (fork, restore, start): connections, pools and DNS answers of the
   * old epoch do not belong to the new one, and are ended.
   */
  readonly epoch: string
  readonly mode: MediatedMode
  readonly rules: readonly InjectRule[]
}

/** Sets one header on requests over TLS to matching hosts. Two rules of a VM never set the same header for the same host with the same precision. */
export interface InjectRule {
  /** the credential's name, which is also the name of the guest's variable; logs may contain it */
  readonly credential: string
  /** `api.example.com`, or `*.example.com` for exactly one more label; absent: every host */
  readonly hosts?: readonly string[]
  /** name of the header that is set */
  readonly header: string
  /** holds `${value}` */
  readonly format: string
  /** the secret; it is in no log, error or answer */
  readonly value: string
  /** what the guest has in place of the value; it also replaces the value in what an origin sends back */
  readonly mock: string
}

/** What the proxy's own configuration says of addresses, beside what revisions deny. */
export interface OwnRanges {
  /** private ranges that guests may reach */
  readonly allowPrivate: readonly string[]
  /** ranges that no guest may reach */
  readonly deny: readonly string[]
}

/** Where in a revision a fault is: a field of it, and which entry when it is a list. */
export interface FaultPlace { readonly field: string, readonly index?: number }

/** The body of an answer other than 200. An older proxy gives `code` and `message` alone. */
export interface ControlRefusal {
  readonly code: string
  /** for people */
  readonly message: string
  /** of `invalid_policy` */
  readonly at?: FaultPlace
  /** of `stale_revision` and `other_base`: the one that is enforced; absent: none is */
  readonly revision?: number
}

/** One line for each request, refused ones included. */
export interface AuditEntry {
  /** grows by one with each entry of this VM, also over restarts of the proxy; a missing number is an entry that made room for later ones */
  readonly seq: number
  /** ISO 8601 */
  readonly time: string
  readonly vm: string
  /** the revision in which the VM got the policy that was enforced for the request, as a whole or as a difference */
  readonly revision: number
  readonly protocol: 'http/1.1' | 'h2' | 'websocket' | 'tls' | 'tcp' | 'dns'
  readonly host: string
  readonly port: number
  readonly method?: string
  /** without the query */
  readonly path?: string
  readonly status?: number
  /** names of the credentials that were put in; never their values */
  readonly injected: readonly string[]
  /** why it was refused or failed: one of the codes of proxy/README.md */
  readonly reason?: string
  readonly bytesIn: number
  readonly bytesOut: number
  readonly durationMs: number
  /** only while the server takes traces, and only for requests that reached a VM's own server; the log does not keep it. Milliseconds from the request's arrival on */
  readonly trace?: {
    /** W3C `traceparent` that the guest sent */
    readonly parent?: string
    /** only when the connection was made for this request: when the name was resolved, when TLS was ready */
    readonly resolvedMs?: number
    readonly openedMs?: number
    /** the header went to the origin */
    readonly sentMs?: number
    /** the header of the answer came */
    readonly answeredMs?: number
  }
}

/** A request for a trace; unlike an entry of the log, it has no number. */
export type TracedEntry = Omit<AuditEntry, 'seq' | 'trace'> & { readonly trace: NonNullable<AuditEntry['trace']> }
