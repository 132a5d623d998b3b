// Where an instance is reached, by the name that a rule or a host's label calls it; one that sleeps is woken.
import { Ambiguous, NotFound } from '../../core/errors/common.ts'
import { BerthError } from '../../core/errors/define.ts'
import type { InstanceCopies, InstanceFacts, InstanceWaking } from '../instances/contract.ts'
import type { NetworkService } from '../networking/contract.ts'
import type { Request, Target } from './decide/decide.ts'
import type { CallLeases } from './leases.ts'

export interface TargetsOptions {
  readonly copies: Pick<InstanceCopies, 'find'>
  readonly network: Pick<NetworkService, 'addressOf'>
  readonly waking: InstanceWaking
  readonly leases: CallLeases
}

export class Targets {
  readonly #options: TargetsOptions

  constructor (options: TargetsOptions) {
    this.#options = options
  }

  /** By id or exact name: the beginning of an id is no name that anybody gave. VMs that work for plugins are nobody's to call. */
  find (ref: string): InstanceFacts | undefined {
    try {
      const facts = this.#options.copies.find(ref)
      return !facts.isWorker && (facts.id === ref || facts.name === ref) ? facts : undefined
    } catch (error) {
      if (NotFound.is(error) || Ambiguous.is(error)) return undefined
      throw error
    }
  }

  /** Why it cannot be called as it is now. One in Standby is woken by a call. */
  problemOf (ref: string): string | undefined {
    const facts = this.find(ref)
    if (facts === undefined) return `There is no instance ${ref}.`
    const { id, name, state } = facts
    if (this.#options.network.addressOf(id) === undefined) return `The instance ${name} has no network.`
    return ['Running', 'Initializing', 'Standby'].includes(state) ? undefined : `The instance ${name} does not run; its state is ${state}.`
  }

  /** Its connections are looked for from now on. */
  know (ref: string): void {
    const { network, leases } = this.#options
    const id = this.find(ref)?.id
    const ip = id === undefined ? undefined : network.addressOf(id)?.ip
    if (id !== undefined && ip !== undefined) leases.know(id, ip)
  }

  /** Its address comes from the plugin networking alone, so that it is an instance's own. Waits until its program runs, and has had time to listen; whoever leaves meanwhile lets the others wait on. */
  async reach (ref: string, port: number, { signal, client: caller }: Pick<Request, 'signal' | 'client'>): Promise<Target> {
    const { waking, leases, network } = this.#options
    const facts = this.find(ref)
    if (facts === undefined) return { problem: `There is no instance ${ref}.` }
    const { id, name } = facts
    const ip = network.addressOf(id)?.ip
    if (ip === undefined) return { instanceId: id, problem: `The instance ${name} has no network.` }
    // Before it is woken, so that it does not fall asleep again before the request is there.
    leases.know(id, ip)
    leases.touch(id)
    try {
      await waking.wake(id, { signal, caller, port })
    } catch (error) {
      if (!(error instanceof BerthError) || error.kind === 'internal') throw error
      return { instanceId: id, problem: error.message }
    }
    leases.touch(id)
    return { instanceId: id, ip }
  }
}
