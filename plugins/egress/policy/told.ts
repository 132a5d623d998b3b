// What the proxy was told last, and which VMs may have another policy since: from both follows what it has to be told now.
import type { PolicyChange, PolicyRevision, TracingPolicy, VmPolicy } from '../../../proxy/contract/control.ts'

export interface Policies {
  /** of all VMs that are to have a way out now */
  readonly all: () => readonly VmPolicy[]
  /** of one of them; `undefined`: it has none, or none any more */
  readonly one: (instanceId: string) => VmPolicy | undefined
}

/** What a revision says of all VMs. */
export interface Around {
  readonly denied: readonly string[]
  readonly tracing: TracingPolicy | undefined
}

export class Told {
  readonly #policies: Policies
  /** VMs that may have another policy than the proxy was told, or none any more */
  readonly #changed = new Set<string>()
  /** VMs that the proxy has a policy of; `undefined`: nobody knows, and it has to be told everything */
  #known: Set<string> | undefined
  #denied = ''
  #tracing = ''

  constructor (policies: Policies) {
    this.#policies = policies
  }

  /** This VM's policy is another one now. */
  touch (instanceId: string): void {
    this.#changed.add(instanceId)
  }

  /** What the proxy has is not known any more. */
  forget (): void {
    this.#known = undefined
  }

  /** Everything. What is touched from here on is not in it. */
  whole (revision: number, { denied, tracing }: Around, isLeftOut: (instanceId: string) => boolean): PolicyRevision {
    this.#changed.clear()
    this.#known = undefined
    return { revision, denied, ...tracing === undefined ? {} : { tracing }, vms: this.#policies.all().filter(({ id }) => !isLeftOut(id)) }
  }

  /** What differs from `base`, where that is known and a difference can say it; the proxy must have taken it, or `forget` is called. */
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
    return { base, revision, ...denied.join() === this.#denied ? {} : { denied }, vms, gone }
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
