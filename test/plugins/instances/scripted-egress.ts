// A mediated way out for tests of the instances plugin: it remembers whose policy is enforced, and what was asked in the wrong order. It outlives a server, as the
// proxy does. Values are sealed as really as elsewhere, so that a test can look for them.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { defineError } from '../../../core/errors/define.ts'
import type { EgressAudit, EgressAuthority, EgressRequest, EgressService, EgressSpec, EgressVerdict } from '../../../plugins/instances/egress/contract.ts'
import type { EgressMode } from '../../../plugins/networking/contract.ts'
import type { AuditEntry } from '../../../proxy/contract/control.ts'

/** before, and with a participle after, what the proxy does */
export type EgressStep = 'authority' | 'enforce' | 'enforced' | 'replace' | 'replacing' | 'lift' | 'lifted' | 'adopt'

export interface ScriptedEgressOptions {
  step (step: EgressStep): Promise<void>
  /** of its TAP; undefined without one */
  modeOf (instanceId: string): EgressMode | undefined
  isRunning (instanceId: string): boolean
}

export const EgressUnavailable = defineError('egress_unavailable', 'unavailable', () => 'the egress proxy does not answer')

export interface EnforcedPolicy { readonly address: string, readonly spec: EgressSpec }

export class ScriptedEgress implements EgressService {
  readonly policies = new Map<string, EnforcedPolicy>()
  /** `enforce <id>` and its like */
  readonly calls: string[] = []
  /** what should never happen */
  readonly faults: string[] = []
  readonly entries: AuditEntry[] = []
  readonly #key = randomBytes(32)
  readonly #options: ScriptedEgressOptions

  constructor (options: ScriptedEgressOptions) {
    this.#options = options
  }

  prepare ({ mode, credentials, env }: EgressRequest): EgressSpec {
    const sources = Object.entries(credentials).map(([name, { source }]) => {
      if (env[source.env] === undefined) throw InvalidRequest(`credentials.${name}.source.env: env has no such variable`)
      return source.env
    })
    return { mode, credentials, sealed: Object.fromEntries(sources.map((name) => [name, this.#seal(env[name] ?? '')])) }
  }

  async tryPolicy (): Promise<EgressVerdict> { throw EgressUnavailable() }

  guestEnvironment ({ credentials, sealed }: EgressSpec, env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const kept = Object.entries(env).filter(([name]) => !Object.hasOwn(sealed, name))
    return Object.fromEntries([...kept, ...Object.keys(credentials).map((name) => [name, `mock-${name}`] as const)])
  }

  divide ({ credentials, sealed }: EgressSpec, env: Readonly<Record<string, string>>): ReturnType<EgressService['divide']> {
    const isValue = ([name]: [string, string]): boolean => Object.hasOwn(sealed, name)
    const variables = Object.entries(env).filter((entry) => !isValue(entry))
    for (const [name] of variables) if (Object.hasOwn(credentials, name)) throw InvalidRequest(`env.${name}: is a credential`)
    return { values: Object.fromEntries(Object.entries(env).filter(isValue)), variables: Object.fromEntries(variables) }
  }

  rotate (spec: EgressSpec, env: Readonly<Record<string, string>>): EgressSpec {
    for (const name of Object.keys(env)) if (!Object.hasOwn(spec.sealed, name)) throw InvalidRequest(`env.${name}: no credential takes its value from it`)
    return { ...spec, sealed: { ...spec.sealed, ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, this.#seal(value)])) } }
  }

  async authority (): Promise<EgressAuthority> {
    await this.#options.step('authority')
    return { certificate: 'CERTIFICATE', subjectHash: '0123abcd', bundle: 'BUNDLE' }
  }

  async enforce (instanceId: string, address: string, spec: EgressSpec): Promise<void> {
    this.calls.push(`enforce ${instanceId}`)
    await this.#options.step('enforce')
    if (this.#options.modeOf(instanceId) !== spec.mode) this.faults.push(`the policy of ${instanceId} came before the rules of its network`)
    if (this.#options.isRunning(instanceId)) this.faults.push(`the policy of ${instanceId} came after its VM ran`)
    if ([...this.policies].some(([id, policy]) => id !== instanceId && policy.address === address)) this.faults.push(`${address} has the policies of two instances`)
    this.policies.set(instanceId, { address, spec })
    await this.#options.step('enforced')
  }

  async replace (instanceId: string, spec: EgressSpec): Promise<void> {
    this.calls.push(`replace ${instanceId}`)
    await this.#options.step('replace')
    const policy = this.policies.get(instanceId)
    if (policy !== undefined) this.policies.set(instanceId, { ...policy, spec })
    // As when the answer of a proxy that has taken it is lost.
    await this.#options.step('replacing')
  }

  async lift (instanceId: string): Promise<void> {
    this.calls.push(`lift ${instanceId}`)
    await this.#options.step('lift')
    this.policies.delete(instanceId)
    await this.#options.step('lifted')
  }

  async adopt (running: readonly { readonly instanceId: string, readonly address: string, readonly spec: EgressSpec }[]): Promise<void> {
    this.calls.push(`adopt ${running.map(({ instanceId }) => instanceId).sort().join(' ')}`)
    await this.#options.step('adopt')
    this.policies.clear()
    for (const { instanceId, address, spec } of running) this.policies.set(instanceId, { address, spec })
  }

  async audit (instanceId: string, { after = 0, limit }: { readonly after?: number, readonly limit: number }): Promise<EgressAudit> {
    const entries = this.entries.filter(({ vm, seq }) => vm === instanceId && seq > after).slice(0, limit)
    return { entries, next: entries.at(-1)?.seq ?? after }
  }

  /** The VM of an instance begins to run. */
  runs (instanceId: string): void {
    const mode = this.#options.modeOf(instanceId) ?? 'none'
    const policy = this.policies.get(instanceId)
    if ((policy?.spec.mode ?? 'none') !== mode) this.faults.push(`the VM of ${instanceId} runs with mode ${mode} of the network and ${policy?.spec.mode ?? 'no policy'}`)
  }

  /** The value that requests of an instance carry. */
  valueOf (instanceId: string, source: string): string | undefined {
    const sealed = this.policies.get(instanceId)?.spec.sealed[source]
    return sealed === undefined ? undefined : this.#open(sealed)
  }

  #seal (value: string): string {
    const nonce = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce)
    return Buffer.concat([nonce, cipher.update(value), cipher.final(), cipher.getAuthTag()]).toString('base64')
  }

  #open (sealed: string): string {
    const bytes = Buffer.from(sealed, 'base64')
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, 12)).setAuthTag(bytes.subarray(-16))
    return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString()
  }
}
