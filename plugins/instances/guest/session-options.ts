// The options of a session with a guest, and the calls that its listener gets. Types only.
import type { Logger } from '../../../core/contracts/services.ts'
import type { Vm } from '../../../core/library/hypervisor.ts'
import type { GuestIdentity, GuestLink, GuestService, GuestTrust, Workload } from '../../guest/contract.ts'

export interface GuestSessionOptions {
  readonly vm: Vm
  readonly guest: GuestService
  /** without `trust` */
  readonly workload: Workload
  /** asked when a guest is given its workload; after a restart of the server the answer may take a while */
  readonly trust?: () => Promise<GuestTrust>
  /** the signal that the image wants in place of SIGTERM */
  readonly stopSignal?: number
  /** `launched`: its program may not have been started yet; `restored`: started on a memory image, and its guest may still be asleep; `running`: its program was seen to run */
  readonly origin: 'launched' | 'restored' | 'running'
  /** a link that was set up already, with a guest that waits for its workload; goes with `launched` */
  readonly link?: GuestLink
  /** the identity that a guest which is found asleep is told when it is woken for the first time */
  readonly wakeAs: GuestIdentity
  readonly log: Logger
}

export interface GuestSessionListener {
  /** `vm.state` or `program` has changed */
  changed (): void
  /** the VMM is gone; nothing is called after this */
  gone (): void
}
