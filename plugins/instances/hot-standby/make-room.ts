// Kept VMs have no claim to what they take: they are ended before an instance that has one is short of it.
import { memoryOfHost } from '../../../core/process/host-memory.ts'
import { isShort } from '../reclaim/host-memory.ts'
import type { ResourceService } from '../room/contract.ts'
import type { KeptVms } from './contract.ts'

export interface Rivals {
  readonly kept: Pick<KeptVms, 'count' | 'endOldest' | 'shrinkTo'>
  readonly resources: Pick<ResourceService, 'memoryLeft'> | undefined
}

/** Ends the oldest kept VMs until the others fit into what all claims and the kernel leave. @param memoryBytes that a VM is about to take */
export async function makeRoom ({ kept, resources }: Rivals, memoryBytes: number): Promise<void> {
  if (kept.count().vms === 0) return
  if (resources !== undefined) await kept.shrinkTo(await resources.memoryLeft(), 'room')
  const isTight = async (): Promise<boolean> => {
    const { totalBytes, availableBytes } = await memoryOfHost()
    return isShort({ totalBytes, availableBytes: availableBytes - memoryBytes })
  }
  while (kept.count().vms > 0 && await isTight()) await kept.endOldest('pressure')
}
