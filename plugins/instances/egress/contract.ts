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

/** The certificate of the proxy's authority, which guests are to trust. Only the proxy has its key. */
export interface EgressAuthority {
  readonly certificate: string
  readonly subjectHash: string
  readonly bundle: string
}

export interface EgressAudit {
  readonly entries: readonly AuditEntry[]
  /** the `after` of the next request */
  readonly next: number
}

/** A request that was not made, and a policy that no instance has, to be tried on each other. */
export interface EgressTrial {
  readonly mode: MediatedMode
  readonly credentials: Readonly<Record<string, CredentialRequest>>
  readonly url: string
}

export interface EgressVerdict {
  /** `direct`: the request goes out beside the proxy, since the mode leaves its port alone */
  readonly decision: 'allow' | 'refuse' | 'direct'
  /** of the proxy's codes, or `port_not_mediated` */
  readonly reason?: string
  readonly message?: string
  readonly host: string
  readonly port: number
  readonly protocol: 'http' | 'https'
  /** the host is a name; the addresses that it resolves to are judged as well when a request is made */
  readonly needs_address: boolean
  readonly injected: string[]
  readonly headers: string[]
}

export interface EgressService {
  /** Judges a request. @throws invalid_request naming the field's path, never a value */
  prepare (request: EgressRequest): EgressSpec
  /** What a policy would do with a request. Nothing is changed. @throws invalid_request naming the field's path; egress_unavailable when only the proxy knows its configuration, and it does not answer */
  tryPolicy (trial: EgressTrial): Promise<EgressVerdict>
  /** The variables that the guest sees in place of those of the request: `mock-<NAME>` for each credential, and no variable that a credential takes its value from. */
  guestEnvironment (spec: EgressSpec, env: Readonly<Record<string, string>>): Readonly<Record<string, string>>
  /** Divides variables into values of credentials, for `rotate`, and variables of the guest. @throws invalid_request naming `env.<NAME>` when that is the mock of a credential, whose value comes in another variable */
  divide (spec: EgressSpec, env: Readonly<Record<string, string>>): { readonly values: Readonly<Record<string, string>>, readonly variables: Readonly<Record<string, string>> }
  /** The policy with new values; the other values stay. @throws invalid_request naming `env.<NAME>` when that is no credential's source, or its value cannot be used */
  rotate (spec: EgressSpec, env: Readonly<Record<string, string>>): EgressSpec
  /** Starts the proxy when it does not run yet. @throws egress_unavailable */
  authority (): Promise<EgressAuthority>
  /**
   * Enforces a policy for the VM that is about to run at this address, as a new machine: connections of an earlier one are not its own. Resolves when the proxy has taken the policy.
   * @throws egress_unavailable when the proxy did not take it within some seconds: the VM has no way out then
   */
  enforce (instanceId: string, address: string, spec: EgressSpec): Promise<void>
  /** Replaces the policy of a VM that runs on. After it has resolved no request carries an older value. @throws egress_unavailable; which policy is enforced is then unknown until the next call */
  replace (instanceId: string, spec: EgressSpec): Promise<void>
  /** Takes the policy away: nothing is allowed any more. Idempotent; never rejects: a proxy that does not answer now is told as soon as it does. */
  lift (instanceId: string): Promise<void>
  /**
   * Names all VMs that run, once, at the start of the server. Their policies and connections go on, and nobody else is allowed anything. Until then the proxy
   * keeps what an earlier server told it. Resolves at once; the proxy is told as soon as it answers.
   */
  adopt (running: readonly { readonly instanceId: string, readonly address: string, readonly spec: EgressSpec }[]): Promise<void>
  /** What the proxy has logged of an instance, oldest first. @throws egress_unavailable */
  audit (instanceId: string, options: { readonly after?: number, readonly limit: number }): Promise<EgressAudit>
}

declare module '../../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly egress: EgressService
  }
}
