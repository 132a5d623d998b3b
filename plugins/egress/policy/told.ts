// The last revision that the proxy was sent, and the VMs that may have another policy since: both determine the next message.
import type { PolicyChange, PolicyRevision, TracingPolicy, VmPolicy } from '../../../proxy/contract/control.ts'

export interface Policies {
  /** the policies of all VMs that are to have a way out now */
  readonly all: () => readonly VmPolicy[]
  /** the policy of one VM; `undefined`: it has none (any more) */
  readonly one: (instanceId: string) => VmPolicy | undefined
}

/** The part of a revision that is about all VMs. */
export interface Around {
  readonly denied: readonly string[]
  readonly tracing: TracingPolicy | undefined
}

export class Told {
  readonly #policies: Policies
  /** VMs that may have another policy than the proxy was told, or none any more */
  readonly #changed = new Set<string>()
  /** VMs that the proxy has a policy of; `undefined`: unknown, so the whole revision must be sent */
  #known: Set<string> | undefined
  #denied = ''
  #tracing = ''

  constructor (policies: Policies) {
    this.#policies = policies
  }

  /** This VM's policy has changed. */
  touch (instanceId: string): void {
    this.#changed.add(instanceId)
  }

  /** It is no longer known what the proxy has. */
  forget (): void {
    this.#known = undefined
  }

  /** The whole revision. Later touches are not part of it. */
  whole (revision: number, { denied, tracing }: Around, isLeftOut: (instanceId: string) => boolean): PolicyRevision {
    this.#changed.clear()
    this.#known = undefined
    return { revision, denied, ...tracing === undefined ? {} : { tracing }, vms: this.#policies.all().filter(({ id }) => !isLeftOut(id)) }
  }

  /** The difference from `base`, or `undefined` where it is unknown or cannot be expressed. The proxy must take it, or `forget` must be called. */
  change (base: number, revision: number, { denied, tracing }: Around, isLeftOut: (instanceId: string) => boolean): PolicyChange | undefined {
    if (this.#known === undefined || textOf(tracing) !== this.#tracing) return undefined
    const known = this.#known
    const vms: VmPolicy[] = []
    const gone: string[] = []
    for (const id of this.#changed) {
      const policy = isLeftOut(id) ? undefined : this.#policies.one(id)
      if (policy !== undefined) vms.push(policy)
      else if (known.has(id)) gone.push(id)
    }
    this.#changed.clear()
    return { base, revision, ...this.denies(denied) ? {} : { denied }, vms, gone }
  }

  /** Whether these addresses, and no others, are denied by what the proxy has taken: what was read for a message that never arrived does not count. */
  denies (denied: readonly string[]): boolean {
    return denied.join() === this.#denied
  }

  /** The proxy enforces it. */
  taken (sent: PolicyRevision | PolicyChange): void {
    if (sent.denied !== undefined) this.#denied = sent.denied.join()
    if (!('base' in sent)) {
      this.#known = new Set()
      this.#tracing = textOf(sent.tracing)
    }
    for (const { id } of sent.vms) this.#known?.add(id)
    if ('base' in sent) for (const id of sent.gone) this.#known?.delete(id)
  }
}

function textOf (tracing: TracingPolicy | undefined): string {
  return tracing === undefined ? '' : JSON.stringify(tracing)
}
