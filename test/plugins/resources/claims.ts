// Claims for tests: one vCPU each, unless said otherwise.
import type { ResourceClaim } from '../../../plugins/instances/room/contract.ts'
import type { Totals } from '../../../plugins/resources/repository.ts'

export function claimOf (id: string, fields: Partial<ResourceClaim> = {}): ResourceClaim {
  return { kind: 'instance', id, name: `name-${id}`, active: true, vcpus: 1, memoryBytes: 2 ** 30, diskBytes: 10, downloadBps: 0, uploadBps: 0, diskIoBps: 0, ...fields }
}

/** Refuses when there are more vCPUs than that with one more. */
export function refuseOver (vcpus: number): (others: Totals) => void {
  return (others) => { if (others.vcpus + 1 > vcpus) throw new Error('full') }
}
