// The service `instanceCopies`: copies of instances that outlive them.
import { compressionFor } from '../compression/compression-for.ts'
import type { Context } from '../context.ts'
import type { InstanceCopies, InstanceFacts } from '../contract.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { locked } from '../operations/locked.ts'
import { requireOwn } from '../workers/own-instance.ts'
import { capture } from './capture.ts'
import { forkCopy } from './fork.ts'
import { replace } from './replace.ts'
import { spareForkKey } from './spare-fork.ts'

export function createCopies (context: Context): InstanceCopies {
  const { instances, metrics, settings } = context
  return {
    find: (ref) => factsOf(instances.find(ref)),
    findOwn (call, ref) {
      const instance = instances.find(ref)
      requireOwn(call, instance)
      return factsOf(instance)
    },
    compression: (ref, asked) => compressionFor(asked, instances.find(ref).record.spec, settings.compression),
    capture: async (ref, kind, files) => await locked(context, ref, 'snapshot', async (instance) => await metrics.timed('capture', async () => await capture(context, instance, kind, files))),
    fork: async (copy, files, request) => (await metrics.timed('fork', async () => await forkCopy(context, copy, files, request))).view,
    forget (files) { void context.spares.forget(spareForkKey(files)) },
    restore: async (ref, copy, files, request) => await locked(context, ref, 'snapshot restore', async (instance) => {
      await metrics.timed('replace', async () => { await replace(context, instance, copy, files, request) })
      return instance.view
    })
  }
}

function factsOf ({ id, name, state, record: { imageDigest, spec: { hypervisor, worker } } }: LiveInstance): InstanceFacts {
  return { id, name, state, hypervisor, imageDigest, isWorker: worker !== undefined }
}
