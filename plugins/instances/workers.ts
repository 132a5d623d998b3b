// The service `workers`: instances that do work for another plugin.
import { InvalidState, NotFound } from '../../core/errors/common.ts'
import { formatSize } from '../../core/units.ts'
import type { GuestLink } from '../guest/contract.ts'
import { awaitAgent } from './agent.ts'
import type { Context } from './context.ts'
import type { InstanceWorkers, WorkerRequest } from './contract.ts'
import { AgentUnavailable } from './errors.ts'
import type { LiveInstance } from './live-instance.ts'
import { create } from './operations/create.ts'
import { remove } from './operations/delete.ts'
import type { CreateInstance } from './schemas.ts'
import { waitForState } from './wait.ts'

export function createWorkers (context: Context): InstanceWorkers {
  const { instances, locks, metrics } = context
  const isWorker = ({ record }: LiveInstance): boolean => record.spec.worker !== undefined
  return {
    async create (request) {
      const { id } = await create(context, bodyOf(request), request.volumeOwner)
      return { id }
    },

    link: async (id, waitMs, signal) => await linkTo(instances.get(id), waitMs, signal),

    async remove (ref) {
      // A caller may have given an instance of its own the name that a worker was to have.
      const found = instances.all().find((instance) => isWorker(instance) && (instance.id === ref || instance.name === ref))
      if (found === undefined) return
      await locks.hold(found.id, async () => {
        if (!found.deleted) await metrics.timed('delete', async () => { await remove(context, found, 0) })
      })
    }
  }
}

function bodyOf ({ name, image, argv, vcpus, memoryBytes, network, volumes, tags }: WorkerRequest): CreateInstance {
  return {
    name,
    image,
    entrypoint: [...argv],
    cmd: [],
    vcpus,
    size: formatSize(memoryBytes),
    network: networkOf(network),
    skip_kernel_headers: true,
    ...(volumes.length === 0 ? {} : { volumes: volumes.map(({ volumeId, mountPath }) => ({ volume_id: volumeId, mount_path: mountPath })) }),
    tags: { ...tags }
  }
}

function networkOf (network: WorkerRequest['network']): CreateInstance['network'] {
  if (network === 'none' || network === 'direct') return { enabled: network === 'direct' }
  return { enabled: true, egress: { enabled: true, enforcement: { mode: network } } }
}

async function linkTo (instance: LiveInstance, waitMs: number, signal: AbortSignal): Promise<GuestLink> {
  const { name } = instance
  const startedAt = performance.now()
  const { state, timed_out: timedOut, state_error: error } = await waitForState(instance, { state: 'Running', timeoutMs: waitMs }, signal)
  signal.throwIfAborted()
  if (timedOut) throw AgentUnavailable(name)
  if (state !== 'Running') throw InvalidState(`instance ${name} has ended: ${error ?? instance.record.exit?.exitMessage ?? `it is ${state}`}`)
  const link = await awaitAgent(instance, Math.max(1, waitMs - (performance.now() - startedAt)), signal)
  if (instance.deleted) throw NotFound('instance', instance.id)
  return link
}
