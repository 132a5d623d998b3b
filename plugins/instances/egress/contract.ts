// What instances ask of the plugin that mediates their way out (egress), and what they keep for it. Types only.
import type { AuditEntry } from '../../../proxy/contract/control.ts'
import type { MediatedMode } from '../../../proxy/contract/modes.ts'

/** One entry of `credentials` in a create request, keyed there by the variable that the guest sees. */
export interface CredentialRequest {
  /** the variable of the request's `env` that holds the real value */
  readonly source: { readonly env: string }
  readonly inject: readonly {
    /** absent: every host */
    readonly hosts?: readonly string[]
    readonly as: { readonly header: string, readonly format: string }
  }[]
}

export interface EgressRequest {
  readonly mode: MediatedMode
  readonly credentials: Readonly<Record<string, CredentialRequest>>
  /** of the request; holds the real values */
  readonly env: Readonly<Record<string, string>>
}

/**
 * What is stored of an instance's policy, and copied with it: the plugin egress alone reads it. Holds secrets only as `secrets.seal` made them.
 */
export interface EgressSpec {
  readonly mode: MediatedMode
  readonly credentials: Readonly<Record<string, CredentialRequest>>
  /** the sealed values, by the variable that they came in */
  readonly sealed: Readonly<Record<string, string>>
}

/** The certificate of the proxy's authority, for guests to trust. Its key is the proxy's alone. */
export interface EgressAuthority {
  readonly certificate: string
  readonly subjectHash: string
  readonly bundle: string
}

export interface EgressAudit {
  readonly entries: readonly AuditEntry[]
  /** `after` of the next question */
  readonly next: number
}

/** A request that somebody thinks of, and a policy that nobody has yet. */
export interface EgressTrial {
  readonly mode: MediatedMode
  readonly credentials: Readonly<Record<string, CredentialRequest>>
  readonly url: string
}

export interface EgressVerdict {
  /** `direct`: it goes out beside the proxy, since the mode leaves such ports alone */
  readonly decision: 'allow' | 'refuse' | 'direct'
  /** of the proxy's codes, or `port_not_mediated` */
  readonly reason?: string
  readonly message?: string
  readonly host: string
  readonly port: number
  readonly protocol: 'http' | 'https'
  /** the host is a name: what it resolves to is judged as well, when a request is made */
  readonly needs_address: boolean
  readonly injected: string[]
  readonly headers: string[]
}

export interface EgressService {
  /** Judges a request. @throws invalid_request naming the field's path, never a value */
  prepare (request: EgressRequest): EgressSpec
  /** What a policy would do with a request. Nothing is changed. @throws invalid_request naming the field's path */
  tryPolicy (trial: EgressTrial): Promise<EgressVerdict>
  /** What the guest sees in place of the request's variables: no source of a credential, `mock-<NAME>` for each credential. */
  guestEnvironment (spec: EgressSpec, env: Readonly<Record<string, string>>): Readonly<Record<string, string>>
  /** Which of these are values of credentials, for `rotate`, and which are variables of the guest's. @throws invalid_request naming `env.<NAME>` when the guest has a mock of that, whose value comes in another variable */
  divide (spec: EgressSpec, env: Readonly<Record<string, string>>): { readonly values: Readonly<Record<string, string>>, readonly variables: Readonly<Record<string, string>> }
  /** The policy with new values; the other values stay. @throws invalid_request naming `env.<NAME>` when that is no credential's source, or its value cannot be used */
  rotate (spec: EgressSpec, env: Readonly<Record<string, string>>): EgressSpec
  /** Starts the proxy when it does not run yet. @throws egress_unavailable */
  authority (): Promise<EgressAuthority>
  /**
   * Enforces a policy for the VM that is about to run at this address, as a machine that begins with no connection of before. Resolves when the proxy has taken it.
   * @throws egress_unavailable when it did not within some seconds: the VM has no way out then
   */
  enforce (instanceId: string, address: string, spec: EgressSpec): Promise<void>
  /** Another policy for a VM that runs on. After it has resolved no request carries an older value. @throws egress_unavailable; which one is enforced is then unknown until the next call */
  replace (instanceId: string, spec: EgressSpec): Promise<void>
  /** Nothing is allowed any more. Idempotent; never rejects: what the proxy cannot be told now it is told as soon as it answers. */
  lift (instanceId: string): Promise<void>
  /**
   * All VMs that run, once, at the start of the server: theirs go on with the connections they have, and nobody else is allowed anything. Until then the proxy
   * keeps what an earlier server told it. Resolves at once; the proxy is told as soon as it answers.
   */
  adopt (running: readonly { readonly instanceId: string, readonly address: string, readonly spec: EgressSpec }[]): Promise<void>
  /** What the proxy wrote down of an instance, oldest first. @throws egress_unavailable */
  audit (instanceId: string, options: { readonly after?: number, readonly limit: number }): Promise<EgressAudit>
}

declare module '../../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly egress: EgressService
  }
}
