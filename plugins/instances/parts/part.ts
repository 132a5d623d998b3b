// What an instance holds besides its row and its files: each kind of it is a part. The operations know no part by name; they walk the list in all.ts.
import type { VmSpec } from '../../../core/library/hypervisor.ts'
import type { BaseContext } from '../context.ts'
import type { InstanceRecord, InstanceSpec } from '../record.ts'

/**
 * Whom a part is reserved for. `resting`: an instance without a VM; `running`: one that gets a VM right away; `hidden`: a VM of the server's own, which must take
 * nothing from instances.
 */
export type Purpose = 'resting' | 'running' | 'hidden'

/** Which memory image is to be made of a VM. `none`: its disk alone is copied; `own`: one that only the instance itself goes on from; `copied`: one that others may go on from. */
export type ImageUse = 'none' | 'own' | 'copied'

/** What a part adds to a VM. */
export type VmShare = Partial<Pick<VmSpec, 'devices' | 'disks' | 'groups' | 'network'>>

/**
 * Something that an instance holds. A part leaves out the steps in which it has nothing to do, and does nothing in any of them for an instance without it.
 *
 * The server may be killed before, in and after each step. What is held is therefore stored by whoever gives it (the part's own plugin), under the id of the instance,
 * and the row of the instance is there before it and goes after it: the next start finds one in the other (`retain`).
 */
export interface InstancePart {
  /** for messages */
  readonly name: string
  /** VMs of the server's own hold it as well: when none is left, one of these is given up for an instance. */
  readonly heldByHidden?: boolean
  /** Disconnecting may go on behind the answer to a standby. `connect` and `release` then wait for it (`context.behind`). */
  readonly lags?: boolean

  /** At a create, before anything is made: the spec with ids in place of what the caller calls things. @throws not_found, ambiguous, invalid_request, PluginDisabled */
  resolve? (context: BaseContext, spec: InstanceSpec): Promise<InstanceSpec>
  /** The spec for an instance that is made of a copy, with its memory or without. @throws what forbids the call, conflict, not_supported */
  forCopy? (context: BaseContext, call: string, spec: InstanceSpec, withMemory: boolean): Promise<InstanceSpec>
  /** The spec of an instance that is taken back to a copy of it: `then`, with what the instance keeps of `now`. Pure. @throws conflict, not_supported */
  forReplacement? (call: string, now: InstanceSpec, then: InstanceSpec, withMemory: boolean): InstanceSpec
  /** Before an instance is copied, or its VM captured. Pure. @throws invalid_state, not_supported: what the part has to say against it */
  requireCapturable? (call: string, record: Pick<InstanceRecord, 'name' | 'spec'>, image: ImageUse): void
  /**
   * For a new row, in the order of the list: the instance holds it until `release`.
   * @throws what the caller is told, such as insufficient_resources, PluginDisabled or a conflict; nothing is held then
   */
  reserve? (context: BaseContext, record: InstanceRecord, purpose: Purpose): Promise<void>
  /**
   * Before anything is done for another VM of an instance, whose last VM has ended: whether there may be one. `disconnect` takes it back. Not called for the VM of a row that was
   * reserved as `running`.
   * @throws what the caller is told, insufficient_resources as a rule; nothing has changed then
   */
  admit? (context: BaseContext, record: InstanceRecord): Promise<void>
  /**
   * Before each VM, in the order of the list, beside the work on its files: makes the part ready for the VM's user. What an earlier VM has left is replaced.
   * @throws what the caller is told, PluginDisabled when the part's plugin was turned off since; the caller then calls `disconnect`, or `release`
   */
  connect? (context: BaseContext, record: InstanceRecord): Promise<VmShare>
  /**
   * After the end of a VM, and for one that was never started, beside the other parts: nothing of the part is within reach of a VM any more, and the instance still holds it.
   * Idempotent. Never rejects: what could not be done is logged; the next `connect`, `release` or start of the server does it.
   */
  disconnect? (context: BaseContext, record: InstanceRecord): Promise<void>
  /**
   * Before the row goes, in reverse order; the VM has ended: the instance holds it no more, and nothing of it is connected. Idempotent; also for what was never reserved or connected.
   * @throws when it could not be done: the row stays then, and with it the duty to release
   */
  release? (context: BaseContext, record: InstanceRecord): Promise<void>
  /**
   * At the start of the server, when the VMs that no row knows have ended, and before anybody is taken over: nobody but these holds it, and they hold what their rows say.
   * Never rejects: what could not be done is logged.
   */
  retain? (context: BaseContext, records: readonly InstanceRecord[]): Promise<void>
  /** At the start of the server, in reverse order, once the VMs that run are taken over: they are connected, and no other instance is. Never rejects. */
  adopted? (context: BaseContext): Promise<void>
}
