// All workers: assigns each VM to one, and brings a policy into force in all of them.
import { availableParallelism } from 'node:os'
import type { Socket } from 'node:net'
import type { AuditStore } from '../audit/store.ts'
import type { TracedRequests } from '../audit/traced.ts'
import type { ProxyConfig } from '../config/schema.ts'
import type { PolicyChange, PolicyRevision } from '../contract/control.ts'
import { addressOf } from '../gate/address.ts'
import type { Log } from '../log/log.ts'
import type { Counters } from '../log/counters.ts'
import type { Guest, Roster } from './roster.ts'
import { APART, Blame } from './blame.ts'
import { PolicyBook } from './policy-book.ts'
import type { WorkerChange, WorkerRevision } from '../vms/revision.ts'
import type { GuestWay } from '../gate/admit.ts'
import type { Launch } from './launch.ts'
import type { Arrival, Ending } from './process.ts'
import { Slot } from './slot.ts'
import { Spare } from './spare.ts'

export interface PoolOptions {
  readonly config: ProxyConfig
  readonly launch: Launch
  readonly roster: Roster
  readonly store: AuditStore
  /** takes the log lines of workers */
  readonly taker: TracedRequests
  readonly counters: Counters
  readonly log: Log
}

/** Interval of reports. A worker that hangs is noticed within this time and `ANSWER_MS` of process.ts, and the counts up to the last report are kept. */
const LOOK_MS = 1_000
const LATE_MS = 5_000
const FEWEST = 2
/** longer than the ends of a worker are remembered */
const APART_MS = 120_000

export class WorkerPool {
  readonly #options: PoolOptions
  readonly #blame = new Blame()
  readonly #spare: Spare
  readonly #slots: Slot[]
  #apart: Slot | undefined
  /** VMs that are in it */
  #suspects: ReadonlySet<string> = new Set()
  #apartSinceMs = 0
  readonly #book = new PolicyBook()
  /** the newest revision that is in force in all workers */
  inForce: number | null = null
  #timer: NodeJS.Timeout | undefined

  constructor (options: PoolOptions) {
    this.#options = options
    this.#spare = new Spare(options)
    const count = options.config.workers ?? Math.max(FEWEST, availableParallelism())
    this.#slots = Array.from({ length: count }, (_, index) => this.#createSlot(String(index)))
    this.#timer = setInterval(() => { void this.report() }, LOOK_MS)
  }

  get slots (): readonly Slot[] {
    return this.#apart === undefined ? this.#slots : [...this.#slots, this.#apart]
  }

  /** Resolves once every worker enforces this revision. @throws StaleRevision */
  async enforce (revision: PolicyRevision): Promise<void> {
    const { roster, store, taker } = this.#options
    this.#book.replace(revision)
    // First of all: VMs that are not in the revision get no new connections.
    roster.replace(revision.revision, revision.vms)
    taker.isOn = revision.tracing !== undefined
    store.keep(['', ...revision.vms.map(({ id }) => id)])
    await this.#enforceAll()
    this.inForce = Math.max(this.inForce ?? 0, revision.revision)
  }

  /**
   * The same for a difference from the enforced revision.
   * @throws StaleRevision OtherBase PolicyFault, and then nothing has changed
   */
  async change (change: PolicyChange): Promise<void> {
    const { roster, store } = this.#options
    const { revision, base, denied, vms, gone } = change
    const { addresses, freed } = this.#book.change(change)
    roster.change(revision, vms, freed)
    store.keepChanged(vms.map(({ id }) => id), gone)
    await Promise.all(this.slots.map(async slot => {
      const own = vms.filter(({ address }) => this.#isServedBy(slot, address))
      const served = new Set(own.map(({ address }) => address))
      const part: WorkerChange = { base, revision, ...denied === undefined ? {} : { denied }, addresses: vms.map(({ address }) => address), freed, vms: own, gone: [...addresses].filter(address => !served.has(address)) }
      await slot.change(part)
    }))
    this.inForce = Math.max(this.inForce ?? 0, revision)
  }

  /** Hands a connection, of which nothing was read, to its VM's worker. It waits when the worker is not ready; `false` when too many connections of that VM wait. */
  pass (guest: Guest, way: GuestWay, socket: Socket): boolean {
    const slot = this.#slotOf(guest)
    if (slot.waitingFor(guest.id) >= this.#options.config.limits.connections) return false
    slot.pass({ way, vm: guest.id, epoch: guest.epoch, socket })
    return true
  }

  /** Asks all workers for a report. */
  async report (): Promise<void> {
    await Promise.all(this.slots.map(async slot => await slot.report()))
    this.#endApart()
  }

  /** Resolves when the log lines of everything up to now are in the store. */
  async lines (): Promise<void> {
    await Promise.all(this.slots.map(async slot => await slot.lines()))
  }

  async close (): Promise<void> {
    clearInterval(this.#timer)
    this.#spare.close()
    await this.report()
    await Promise.all(this.slots.map(async slot => await slot.close(this.#options.config.limits.drainMs + LATE_MS)))
  }

  #createSlot (name: string): Slot {
    return new Slot({ name, spare: this.#spare, log: this.#options.log, part: slot => this.#partOf(slot), onReport: ({ counted }) => this.#options.counters.add(counted), onEnd: (slot, ending) => this.#ended(slot, ending), isWanted: arrival => this.#isWanted(arrival) })
  }

  async #enforceAll (): Promise<void> {
    await Promise.all(this.slots.map(async slot => await slot.enforce()))
  }

  #partOf (slot: Slot): WorkerRevision | undefined {
    const { revision, denied, tracing, addresses } = this.#book
    if (revision === null) return undefined
    return { revision, denied, addresses, ...tracing === undefined ? {} : { tracing }, vms: [...this.#book.vms].filter(({ address }) => this.#isServedBy(slot, address)) }
  }

  #isServedBy (slot: Slot, address: string): boolean {
    const guest = this.#options.roster.find(address)
    return guest !== undefined && !guest.isCutOff && this.#slotOf(guest) === slot
  }

  #slotOf ({ id, address }: Pick<Guest, 'id' | 'address'>): Slot {
    if (this.#apart !== undefined && this.#suspects.has(id)) return this.#apart
    const slot = this.#slots[numberOf(address) % this.#slots.length]
    if (slot === undefined) throw new Error('there are no workers')
    return slot
  }

  #isWanted ({ vm, epoch, socket }: Arrival): boolean {
    const guest = this.#options.roster.find(addressOf(socket))
    return guest?.id === vm && guest.epoch === epoch && !guest.isCutOff
  }

  /** A worker was ended by its own work: looks for the VM whose traffic it was. */
  #ended (slot: Slot, { byItself, active }: Ending): void {
    if (!byItself) return
    const verdict = this.#blame.ended(slot.name, active, performance.now(), vm => this.#homeOf(vm))
    if (verdict === undefined) return
    if ('cut' in verdict) this.#cutOff(verdict.cut)
    else this.#setApart(verdict.apart)
    void this.#enforceAll()
  }

  /** Suspected VMs return to their regular workers as soon as that costs none of them a connection. */
  #endApart (): void {
    const apart = this.#apart
    if (apart?.lastReport?.connections !== 0 || apart.waiting > 0 || performance.now() - this.#apartSinceMs < APART_MS) return
    this.#apart = undefined
    this.#suspects = new Set()
    void this.#enforceAll().then(async () => { await apart.close(0) })
  }

  #homeOf (id: string): string {
    const guest = [...this.#options.roster.all()].find(known => known.id === id)
    return this.#slots[guest === undefined ? 0 : numberOf(guest.address) % this.#slots.length]?.name ?? ''
  }

  #cutOff (id: string): void {
    this.#options.log.error('the traffic of a VM keeps ending workers: it has no way out until it starts anew', new Error('cut off'), { vm: id })
    for (const guest of this.#options.roster.all()) if (guest.id === id) guest.isCutOff = true
  }

  #setApart (vms: ReadonlySet<string>): void {
    this.#options.log.warn('workers keep ending: some of their VMs go into one of their own, to find whose traffic it is', { vms: vms.size })
    this.#suspects = vms
    this.#apartSinceMs = performance.now()
    this.#apart ??= this.#createSlot(APART)
  }
}

/** Addresses are assigned in order, so their VMs go to the workers in turn. */
function numberOf (address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
}
