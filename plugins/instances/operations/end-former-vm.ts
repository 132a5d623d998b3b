// Ends the VM of an earlier server that a row names, when this one does not take it over.
import type { VmHandle } from '../../../core/library/hypervisor.ts'
import { endProcess } from '../../../core/process/end.ts'
import type { BaseContext } from '../context.ts'

/** Nothing is left of it when this resolves; a VM that has ended is fine. */
export async function endFormerVm ({ hypervisors }: Pick<BaseContext, 'hypervisors'>, handle: VmHandle): Promise<void> {
  const vm = await hypervisors.get(handle.driver)?.attach(handle)
  await vm?.kill()
  vm?.release()
  // Even when the driver of the VM is turned off.
  await endProcess(handle)
}
