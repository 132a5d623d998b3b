// What parts of other plugins may ask of this plugin.
import type { Context } from '../context.ts'
import type { InstanceWaking, PartHost } from '../contract.ts'
import { requireOwn } from '../workers/own-instance.ts'
import { partInstance } from './all.ts'

export function createPartHost (context: Context, waking: InstanceWaking): PartHost {
  const { instances, leases, locks } = context
  return {
    waking,
    leases,
    find (ref) {
      const { id, name, state, record: { imageDigest, spec: { hypervisor, worker } } } = instances.find(ref)
      return { id, name, state, hypervisor, imageDigest, isWorker: worker !== undefined }
    },
    hold: async (id, work) => await locks.hold(id, async () => {
      const instance = instances.get(id)
      requireOwn('change', instance)
      return await work(partInstance(context, instance.record))
    })
  }
}
