// Finds the address of an instance by the name in a rule or a host's label; wakes it when it sleeps.
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

  /** By id or exact name: nobody gave out the beginning of an id as a name. VMs that work for plugins cannot be called. */
  find (ref: string): InstanceFacts | undefined {
    try {
      const facts = this.#options.copies.find(ref)
      return !facts.isWorker && (facts.id === ref || facts.name === ref) ? facts : undefined
    } catch (error) {
      if (NotFound.is(error) || Ambiguous.is(error)) return undefined
      throw error
    }
  }

  /** Why it cannot be called now. A call wakes an instance in Standby. */
  problemOf (ref: string): string | undefined {
    const facts = this.find(ref)
    if (facts === undefined) return `There is no instance ${ref}.`
    const { id, name, state } = facts
    if (this.#options.network.addressOf(id) === undefined) return `The instance ${name} has no network.`
    return ['Running', 'Initializing', 'Standby'].includes(state) ? undefined : `The instance ${name} does not run; its state is ${state}.`
  }

  /** Its connections are checked from now on. */
  know (ref: string): void {
    const { network, leases } = this.#options
    const id = this.find(ref)?.id
    const ip = id === undefined ? undefined : network.addressOf(id)?.ip
    if (id !== undefined && ip !== undefined) leases.know(id, ip)
  }

  /** The address comes only from the plugin networking, so it is the instance's own. Waits until its program runs, and has had time to listen; a caller that leaves does not affect other callers. */
  async reach (ref: string, port: number, { signal, client: caller }: Pick<Request, 'signal' | 'client'>): Promise<Target> {
    const { waking, leases, network } = this.#options
    const facts = this.find(ref)
    if (facts === undefined) return { problem: `There is no instance ${ref}.` }
    const { id, name } = facts
    const ip = network.addressOf(id)?.ip
    if (ip === undefined) return { instanceId: id, problem: `The instance ${name} has no network.` }
    // Before it is woken, so that it does not fall asleep again before the request arrives.
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
