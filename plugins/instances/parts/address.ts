// An instance's place in the network: an address for as long as it has a row, a TAP for as long as it has a VM.
import { sideBySide } from '../../../core/jobs/side-by-side.ts'
import { PluginDisabled } from '../../../core/errors/common.ts'
import type { GuestNetwork } from '../../guest/contract.ts'
import type { EgressMode, NetworkPort, NetworkService } from '../../networking/contract.ts'
import type { BaseContext } from '../context.ts'
import type { InstancePart } from '../contract.ts'
import { KeptVmUnfit } from '../hot-standby/unfit.ts'
import type { InstanceRecord } from '../model/record.ts'
import { isShortage } from './shortage.ts'
import { unplugLater } from './unplug-later.ts'

/** devices that are removed at once, at the start of the server */
const AT_ONCE = 64

type Networked = Pick<InstanceRecord, 'id' | 'spec'>

export function createAddress (context: BaseContext): InstancePart {
  const { behind, log } = context
  const address: InstancePart = {
    name: 'networking',
    rank: 20,
    heldByHidden: true,
    lags: true,

    async reserve ({ id, spec }) {
      if (isNetworked(spec)) await requireNetwork(context).allocate(id)
    },

    async connect (instance) {
      const { id, spec, user } = instance
      if (!isNetworked(spec)) return {}
      const network = requireNetwork(context)
      await behind.over(id)
      // The address was allocated with the row.
      const { mac } = await network.allocate(id)
      const { enabled, ...limits } = spec.network
      const plug = async (): Promise<NetworkPort> => await network.plug(id, user?.uid, { ...limits, vcpus: spec.vcpus }, egressModeOf(instance))
      const { namespace, tap } = await plug().catch(async (error: unknown) => {
        // The bridges may be full of TAPs of kept VMs.
        if (!isShortage(error) || !await context.kept.endOldest('room')) throw error
        return await plug()
      })
      return { network: { namespace, tap, mac } }
    },

    // A TAP that stays has no VM behind it. It is removed later, or by the next connect, the next start of the server, or the delete of the instance.
    async disconnect ({ id, spec }) {
      if (!isNetworked(spec)) return
      try {
        await context.network?.unplug(id)
      } catch (error) {
        log.error({ err: error, instance: id }, 'a VM that has ended could not be disconnected from the network yet')
        unplugLater(context, id)
      }
    },

    async suspend (instance) {
      if (!isNetworked(instance.spec)) return
      try {
        await context.network?.suspend(instance.id)
      } catch (error) {
        log.error({ err: error, instance: instance.id }, 'a VM that is kept in standby could not be cut off from the network, and ends')
        await context.kept.end(instance.id, 'unfit')
      }
    },

    async resume ({ id, spec }) {
      if (!isNetworked(spec)) return
      await behind.over(id)
      if (!await requireNetwork(context).resume(id)) throw new KeptVmUnfit('its network device is gone')
    },

    async release ({ id, spec }) {
      if (!isNetworked(spec)) return
      await behind.over(id)
      await context.network?.release(id)
    },

    async retain (instances) {
      try {
        await context.network?.retainOnly(instances.map(({ id }) => id))
      } catch (error) {
        log.error({ err: error }, 'addresses of instances that are no more could not be given back')
      }
    },

    async adopted () {
      // One that is Unknown may have a VM that no row knows.
      const resting = context.instances.all().filter(({ record, session, state }) => record.handle === null && session === undefined && state !== 'Unknown')
      await sideBySide(resting, AT_ONCE, async ({ record }) => {
        // Asked first, as there may be thousands of instances: only one with a TAP has counters.
        if (await isPlugged(context, record)) await address.disconnect?.({ ...record, user: undefined })
      })
    }
  }
  return address
}

/** Cuts a VM made ahead off from the network, while its guest has another machine's identity: no packet passes until `openPort`. */
export async function closePort ({ network }: BaseContext, { id, spec }: Networked): Promise<void> {
  if (isNetworked(spec)) await network?.suspend(id)
}

/** For the instance that such a VM becomes. */
export async function openPort (context: BaseContext, { id, spec }: Networked): Promise<void> {
  if (isNetworked(spec) && !await requireNetwork(context).resume(id)) throw new Error('its network device is gone')
}

/** What the guest is told of its network device; undefined without one. */
export function guestNetworkOf ({ network }: BaseContext, { id, spec }: Networked): GuestNetwork | undefined {
  const place = isNetworked(spec) ? network?.addressOf(id) : undefined
  if (place === undefined) return undefined
  const { ip, prefix, mac, gateway, dns } = place
  return { mac, address: `${ip}/${prefix}`, gateway, dns }
}

/** The mode of the network's egress for this instance. */
export function egressModeOf ({ spec }: Pick<InstanceRecord, 'spec'>): EgressMode {
  return spec.egress?.mode ?? 'none'
}

/** An instance may have been created while the plugin was there. */
export function requireNetwork ({ network }: BaseContext): NetworkService {
  if (network === undefined) throw PluginDisabled('networking', 'network.enabled')
  return network
}

function isNetworked (spec: InstanceRecord['spec']): spec is InstanceRecord['spec'] & Required<Pick<InstanceRecord['spec'], 'network'>> {
  return spec.network?.enabled === true
}

async function isPlugged ({ network, log }: BaseContext, { id, spec }: Networked): Promise<boolean> {
  if (!isNetworked(spec)) return false
  try {
    return await network?.counters(id) !== undefined
  } catch (error) {
    log.error({ err: error, instance: id }, 'whether an instance is connected to the network could not be found out')
    return false
  }
}
