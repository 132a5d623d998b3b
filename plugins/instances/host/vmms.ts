// The VMMs of instances among the processes that the server tells people of.
import type { Vm } from '../../../core/library/hypervisor.ts'
import type { KeptProcess } from '../../../core/process/register.ts'
import type { BaseContext } from '../context.ts'
import { manifest } from '../manifest.ts'

/** Returns what takes them out again. */
export function registerVmms ({ instances, kept, processes }: Pick<BaseContext, 'instances' | 'kept' | 'processes'>): () => void {
  return processes.add(function * () {
    for (const { id, name, session } of instances.all()) {
      const vm = session?.vm ?? kept.find(id)?.vm
      if (vm !== undefined && vm.state.status !== 'gone') yield processOf(vm, id, name)
    }
  })
}

function processOf ({ handle: { driver, pid, startTicks, bootId }, state: { status } }: Vm, instanceId: string, name: string): KeptProcess {
  return { name: `${driver} of ${name}`, plugin: manifest.id, identity: { pid, startTicks, bootId }, state: status === 'gone' ? 'ended' : status, instanceId }
}
