// Starts the VM of an instance. Storing it is up to the caller.
import type { HypervisorDriver, Vm, VmSpec } from '../../../core/library/hypervisor.ts'
import { traced } from '../../../core/tracing/span.ts'
import type { GuestLink } from '../../guest/contract.ts'
import type { ReadyImage } from '../../images/contract.ts'
import { hypervisorAbsent } from '../host/absent-hypervisor.ts'
import { identityOf, pathsIn, type BaseContext, type Context } from '../context.ts'
import type { VmShare } from '../contract.ts'
import { HypervisorUnavailable } from '../errors.ts'
import { kernelHeadersDisks } from '../guest/kernel-headers.ts'
import { GuestSession } from '../guest/guest-session.ts'
import type { GuestSessionOptions } from '../guest/session-options.ts'
import { makeMemory } from '../memory-image/memory-file.ts'
import { guestNetworkOf } from '../parts/address.ts'
import type { Connection } from '../parts/connection.ts'
import { trustOf } from '../parts/policy.ts'
import type { InstanceRecord } from '../model/record.ts'
import { workloadOf } from '../guest/workload.ts'

/** Boots the VM, whose files must exist. Leaves nothing behind when it rejects. */
export async function launch (context: Context, record: InstanceRecord, image: ReadyImage, connection: Connection): Promise<Vm> {
  const driver = driverOf(context, record)
  const spec = await vmSpecOf(context, record, image, connection)
  // Devices fix all memory in place, so that no image of it can be made.
  const memory = driver.imaging === undefined || connection.devices.length > 0 ? undefined : await makeMemory(context, record)
  return await traced(`launch VM ${driver.name}`, {}, async () => await driver.launch(memory === undefined ? spec : { ...spec, memory }))
}

/** @throws PluginDisabled */
export function driverOf (context: BaseContext, record: Pick<InstanceRecord, 'spec'>): HypervisorDriver {
  const driver = context.hypervisors.get(record.spec.hypervisor)
  if (driver === undefined) throw hypervisorAbsent(record.spec.hypervisor, 'hypervisor', context.plugins)
  return driver
}

/**
 * Asked before anything is made for the VM. The driver remembers its answer, so that only the first call takes time.
 * @param field of the request that led to the driver
 * @throws HypervisorUnavailable with the driver's reason
 */
export async function requireAvailable (context: BaseContext, field: string, driver: HypervisorDriver): Promise<void> {
  const { supported, reason } = await driver.probe()
  if (!supported) throw HypervisorUnavailable(field, driver.name, reason ?? 'its driver gives no reason')
}

/**
 * The VmSpec of an instance, without its memory.
 * @param share what its parts give it
 */
export async function vmSpecOf (context: BaseContext, record: Pick<InstanceRecord, 'id' | 'slot' | 'spec'>, { rootfs }: Pick<ReadyImage, 'rootfs'>, { devices = [], disks = [], groups = [], network }: VmShare): Promise<VmSpec> {
  const system = await context.guest.system()
  const paths = pathsIn(context, record.id)
  if (record.slot === null && context.separateUsers) throw new Error(`instance ${record.id} has no user that a VM could run as`)
  const identity = identityOf(context, record)
  return {
    id: record.id,
    directory: paths.directory,
    vcpus: record.spec.vcpus,
    memoryBytes: record.spec.memoryBytes,
    ...(record.spec.hotplugBytes === undefined ? {} : { hotplugBytes: record.spec.hotplugBytes }),
    ...(record.spec.diskIoBps === undefined ? {} : { diskBytesPerSecond: record.spec.diskIoBps }),
    groups,
    balloon: true,
    kernel: { path: system.kernel, initrd: system.initrd, arguments: system.arguments },
    disks: [
      { id: 'root', path: rootfs, readonly: true },
      { id: 'overlay', path: paths.overlay, readonly: false },
      ...kernelHeadersDisks(context, record.spec),
      ...disks
    ],
    ...(network === undefined ? {} : { network }),
    ...(devices.length === 0 ? {} : { devices }),
    files: { vmm: paths.vmm, output: paths.output, report: paths.report },
    ...(identity === undefined ? {} : { identity })
  }
}

export interface Conversation extends Pick<GuestSessionOptions, 'vm' | 'origin'> {
  readonly image: ReadyImage
  /** whether memory or disk are copies of another instance's, and the guest has not been told so yet; absent: they are not */
  readonly newMachine?: boolean | undefined
  /** to a guest that waits for its workload, when it was set up already */
  readonly link?: GuestLink
}

/** Begins the session with the guest of a VM. */
export function converse (context: Context, record: InstanceRecord, { image, vm, origin, newMachine = false, link }: Conversation): GuestSession {
  const network = guestNetworkOf(context, record)
  const trust = trustOf(context, record)
  return new GuestSession({
    vm,
    origin,
    // A guest that goes on keeps its name and address: writing the name anew would take half of the time of its waking, and undo changes that its program made.
    wakeAs: newMachine ? { hostname: record.name, newMachine, ...(network === undefined ? {} : { network }) } : {},
    guest: context.guest,
    workload: { ...workloadOf(record, image, network, context.guest), ...(newMachine ? { newMachine } : {}) },
    ...(trust === undefined ? {} : { trust }),
    ...(link === undefined ? {} : { link }),
    ...(image.stopSignal === undefined ? {} : { stopSignal: image.stopSignal }),
    log: context.log.child({ instance: record.id })
  })
}
