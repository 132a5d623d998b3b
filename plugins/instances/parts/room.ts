// What an instance takes of the host: its disks count for as long as it has a row, and the rest for as long as it has a VM.
import { mapInTurns } from '../../../core/jobs/in-turns.ts'
import { isAlive } from '../../../core/process/identity.ts'
import { makeRoom } from '../hot-standby/make-room.ts'
import type { ResourceClaim } from '../room/contract.ts'
import type { BaseContext } from '../context.ts'
import type { InstancePart } from '../contract.ts'
import { restLater } from './rest-later.ts'
import { isShortage } from './shortage.ts'
import type { InstanceRecord, InstanceSpec } from '../model/record.ts'

type Claimant = Pick<InstanceRecord, 'id' | 'name' | 'spec'>

export function createRoom (context: BaseContext): InstancePart {
  return {
    name: 'resources',
    rank: 10,

    async reserve (instance, purpose) {
      // A VM of the server's own claims no room, and gets the limits of the instance that it becomes.
      if (purpose === 'hidden') await context.resources?.enclose(instance.id, vmOf(instance))
      else await claimRoom(context, instance, purpose)
    },

    async admit (instance) {
      await context.behind.over(instance.id)
      await claimRoom(context, instance, 'running')
    },

    async connect ({ id }) {
      return { groups: context.resources?.groupsOf(id) ?? [] }
    },

    async disconnect ({ id }) {
      try {
        await context.resources?.rest(id)
      } catch (error) {
        context.log.error({ err: error, instance: id }, 'what a VM that has ended took of the host could not be given back yet')
        restLater(context, id)
      }
    },

    async suspend ({ id }) {
      try {
        await context.resources?.rest(id, { keepGroup: true })
        await makeRoom(context, 0)
      } catch (error) {
        context.log.error({ err: error, instance: id }, 'what a VM takes of the host that is kept in standby could not be given back yet')
        restLater(context, id)
      }
    },

    // Its room was claimed anew before.
    async resume () {},

    async release ({ id }) {
      await context.behind.over(id)
      await context.resources?.release('instance', id)
    },

    async retain (instances) {
      try {
        const active = instances.filter(({ status }) => status === 'active')
        await context.resources?.retainOnly('instance', await mapInTurns(active, (record) => claimOf(context, record, record.handle === null ? 'resting' : 'running')))
        // Groups of VMs that run on are there, unless somebody has removed them, or the configuration names another place.
        for (const record of active) {
          const { id, handle } = record
          if (handle !== null && isAlive(handle)) await context.resources?.enclose(id, vmOf(record), handle.pid)
        }
      } catch (error) {
        context.log.error({ err: error }, 'what instances take of the host could not be counted anew')
      }
    }
  }
}

/**
 * Asks for room for an instance that has a row, or for its VM as well.
 * @param purpose `running`: the instance gets a VM
 * @throws insufficient_resources; nothing is changed then
 */
export async function claimRoom (context: BaseContext, claimant: Claimant, purpose: 'running' | 'resting'): Promise<void> {
  const claim = async (): Promise<void> => { await context.resources?.claim(claimOf(context, claimant, purpose)) }
  await claim().catch(async (error: unknown) => {
    if (!isShortage(error)) throw error
    // What VMs have given up that were just suspended may not be counted yet.
    await context.behind.presentOver()
    await claim()
  })
  if (purpose === 'resting') return
  await makeRoom(context, memoryOf(claimant.spec)).catch((error: unknown) => {
    context.log.error({ err: error }, 'VMs that are kept in standby could not be looked through for room')
  })
}

/** Gives back the room of an instance whose VM runs on as nobody's. */
export async function disclaimRoom ({ resources }: BaseContext, id: string): Promise<void> {
  await resources?.release('instance', id, { keepGroup: true })
}

/** Gives back the room of disks that an instance had, and that its row does not name any more. Does nothing for one that is gone, which has no room. */
export async function shrinkRoom (context: BaseContext, id: string): Promise<void> {
  const instance = context.instances.known(id)
  if (instance !== undefined) await context.resources?.shrink(id, diskBytesOf(instance.record.spec))
}

/** Memory of a VM, with what is plugged in. */
export function memoryOf ({ memoryBytes, hotplugBytes = 0 }: Pick<InstanceSpec, 'memoryBytes' | 'hotplugBytes'>): number {
  return memoryBytes + hotplugBytes
}

function vmOf ({ spec }: Pick<InstanceRecord, 'spec'>): Pick<ResourceClaim, 'vcpus' | 'memoryBytes'> {
  return { vcpus: spec.vcpus, memoryBytes: memoryOf(spec) }
}

function claimOf ({ network }: BaseContext, { id, name, spec }: Claimant, purpose: 'running' | 'resting'): ResourceClaim {
  const { vcpus, diskIoBps = 0 } = spec
  const { downloadBps = 0, uploadBps = 0 } = spec.network?.enabled === true ? network?.limitsOf({ ...limitsIn(spec.network), vcpus }) ?? {} : {}
  return { kind: 'instance', id, name, active: purpose === 'running', vcpus, memoryBytes: memoryOf(spec), diskBytes: diskBytesOf(spec), downloadBps, uploadBps, diskIoBps }
}

/** Its writable disk, and space for what is written to volumes with an overlay. */
function diskBytesOf ({ overlayBytes, volumes = [] }: InstanceSpec): number {
  return volumes.reduce((sum, volume) => sum + (volume.overlayBytes ?? 0), overlayBytes)
}

function limitsIn ({ downloadBps, uploadBps }: NonNullable<InstanceSpec['network']>): { downloadBps?: number, uploadBps?: number } {
  return { ...downloadBps === undefined ? {} : { downloadBps }, ...uploadBps === undefined ? {} : { uploadBps } }
}
