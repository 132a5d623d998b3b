// The service `workers`: instances that do work for another plugin.
import { InvalidState, NotFound } from '../../../core/errors/common.ts'
import { wordsAfter } from '../../../core/process/log-file.ts'
import type { GuestLink } from '../../guest/contract.ts'
import { awaitAgent } from '../guest/agent.ts'
import type { Settings } from '../config.ts'
import { pathsIn, type Context } from '../context.ts'
import type { InstanceWorkers, WorkerRequest } from '../contract.ts'
import { AgentUnavailable } from '../errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { create } from '../operations/create.ts'
import { remove } from '../operations/delete.ts'
import type { InstanceRequest } from '../model/request.ts'
import { checkVcpus } from '../validate/request.ts'
import { sizesWithMemory } from '../validate/sizes.ts'
import { waitForState } from '../model/wait.ts'

export function createWorkers (context: Context): InstanceWorkers {
  const { instances, locks, log, metrics, settings } = context
  const isWorker = ({ record }: LiveInstance): boolean => record.spec.worker !== undefined
  return {
    async create (request) {
      const { id } = await create(context, requestOf(request, settings), request.volumeOwner)
      return { id }
    },

    async link (id, waitMs, signal) {
      try {
        return await linkTo(instances.get(id), waitMs, signal)
      } catch (error) {
        // The plugin that asked for the worker removes it next, and its console with it.
        if (AgentUnavailable.is(error)) log.warn({ instance: id, console: await wordsAfter(pathsIn(context, id).vmm, 0).catch(String) }, 'the guest of a worker does not answer')
        throw error
      }
    },

    async remove (ref) {
      // A caller may have given its own instance the name that a worker was to have.
      const found = instances.all().find((instance) => isWorker(instance) && (instance.id === ref || instance.name === ref))
      if (found === undefined) return
      await locks.hold(found.id, async () => {
        if (!found.deleted) await metrics.timed('delete', async () => { await remove(context, found, 0) })
      })
    },

    tagged: (tag) => instances.all().filter(isWorker).map(({ record }) => record.spec.tags[tag]).filter((value) => value !== undefined)
  }
}

/** @throws invalid_size, invalid_request: the limits of instances hold for workers, too */
function requestOf ({ name, image, argv, vcpus, memoryBytes, network, volumes, tags }: WorkerRequest, settings: Settings): InstanceRequest {
  return {
    name,
    image,
    spec: {
      entrypoint: [...argv],
      cmd: [],
      env: {},
      ...sizesWithMemory(memoryBytes, settings),
      vcpus: checkVcpus(vcpus, settings),
      skipGuestAgent: false,
      skipKernelHeaders: true,
      ...(volumes.length === 0 ? {} : { volumes: volumes.map(({ volumeId, mountPath }, place) => ({ volumeId, mountPath, readonly: false, place, generation: 0 })) }),
      tags: { ...tags }
    },
    credentials: {},
    network: { enabled: network !== 'none', ...(network === 'none' || network === 'direct' ? {} : { mediated: network }) },
    devices: [],
    ports: []
  }
}

async function linkTo (instance: LiveInstance, waitMs: number, signal: AbortSignal): Promise<GuestLink> {
  const { name } = instance
  const startedAt = performance.now()
  const { state, timedOut, restoreError, error = restoreError } = await waitForState(instance, { state: 'Running', timeoutMs: waitMs }, signal)
  signal.throwIfAborted()
  if (timedOut) throw AgentUnavailable(name)
  if (state !== 'Running') throw InvalidState(`instance ${name} has ended: ${error ?? instance.record.exit?.exitMessage ?? `it is ${state}`}`)
  const link = await awaitAgent(instance, Math.max(1, waitMs - (performance.now() - startedAt)), signal)
  if (instance.deleted) throw NotFound('instance', instance.id)
  return link
}
