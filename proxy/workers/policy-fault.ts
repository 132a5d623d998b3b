import type { FaultPlace } from '../contract/control.ts'

/** most VMs that have a policy at once */
export const MAX_VMS = 65_536

/** What is invalid in a revision, as a sentence that begins with the place and contains no value. */
export class PolicyFault extends Error {
  override readonly name = 'PolicyFault'
  readonly at: FaultPlace

  /** @param place a path into the revision, such as `vms[3].rules[0].header` */
  constructor (place: string, problem: string, options?: ErrorOptions) {
    super(`${place}: ${problem}`, options)
    const [, field = place, index] = /^([^.[]+)(?:\[(\d+)\])?/.exec(place) ?? []
    this.at = { field, ...index === undefined ? {} : { index: Number(index) } }
  }
}
