/** most VMs that have a policy at once */
export const MAX_VMS = 65_536

/** What is wrong with a revision, in a sentence that begins with its place and holds no value. */
export class PolicyFault extends Error {
  override readonly name = 'PolicyFault'
}
