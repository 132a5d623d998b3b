// Keeps the VM of an instance after its standby, so that a restore soon after goes on with it. The image is complete without the VM, and any other change of the instance ends the VM first: a kept VM
// costs nothing but memory.
import { driverOf } from '../operations/launch.ts'
import type { BaseContext } from '../context.ts'
import type { StoredImage } from '../memory-image/files.ts'
import { disconnectParts } from '../parts/all.ts'
import { memoryOf } from '../parts/room.ts'
import type { InstanceRecord } from '../model/record.ts'
import type { Vm, VmImaging } from '../../../core/library/hypervisor.ts'
import type { Kept } from './contract.ts'

/** Asked before the standby, since whoever speaks to a guest that is to be kept must stop before it is captured. */
export function isKeepable (context: BaseContext, record: Pick<InstanceRecord, 'spec'>): boolean {
  return driverOf(context, record).imaging?.keepsPaused === true && context.kept.takes(memoryOf(record.spec))
}

/** From now on the VM may be ended at any time. */
export function keep (context: BaseContext, record: InstanceRecord, { vm, imaging }: { readonly vm: Vm, readonly imaging: VmImaging }, image: StoredImage): void {
  context.kept.put({ record, vm, imaging, image, memoryBytes: memoryOf(record.spec) })
}

/** Ends the VM, and disconnects what it was connected to. Never rejects. */
export async function endKept (context: BaseContext, { vm, record }: Kept): Promise<void> {
  try {
    await vm.kill()
  } catch (error) {
    context.log.error({ err: error, instance: record.id }, 'a VM that was kept in standby could not be ended')
  }
  vm.release()
  await disconnectParts(context, record)
}
