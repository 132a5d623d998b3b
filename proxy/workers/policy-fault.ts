/** most VMs that have a policy at once */
export const MAX_VMS = 65_536

/** What is invalid in a revision, as a sentence that begins with the place and contains no value. */
export class PolicyFault extends Error {
  override readonly name = 'PolicyFault'
}
