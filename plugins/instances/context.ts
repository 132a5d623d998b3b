// What every operation on instances works with, as one object.
import type { EventBus, HostCommands, Logger } from '../../core/contracts/services.ts'
import type { DiskSpace } from '../../core/fs/disk-space.ts'
import type { HypervisorDriver } from '../../core/library/hypervisor.ts'
import type { ProcessRegister } from '../../core/process/register.ts'
import type { PluginReports } from '../../core/plugins/reports.ts'
import type { EgressService } from './egress/contract.ts'
import type { GuestService } from '../guest/contract.ts'
import type { ImageService } from '../images/contract.ts'
import type { NetworkService } from '../networking/contract.ts'
import type { Behind } from './operations/behind.ts'
import type { ResourceService } from './room/contract.ts'
import type { VolumeService } from './volumes/contract.ts'
import type { Alarms } from './life/alarms.ts'
import type { Leases } from './life/leases.ts'
import type { CompressionSchedule } from './compression/schedule.ts'
import type { Settings } from './config.ts'
import type { InstancePart } from './contract.ts'
import type { Monitor } from './health/contract.ts'
import type { KeptVms } from './hot-standby/contract.ts'
import type { KeptMetrics } from './hot-standby/metrics.ts'
import type { Identity } from './folder/files.ts'
import type { InstanceSet } from './model/instance-set.ts'
import { LiveInstance } from './model/live-instance.ts'
import type { Locks } from '../../core/jobs/locks.ts'
import type { InstanceMetrics } from './metrics.ts'
import { pathsOf, type InstancePaths } from './folder/paths.ts'
import type { InstanceRecord } from './model/record.ts'
import type { InstanceRepository } from './model/repository.ts'
import { TRANSITIONS } from './model/state.ts'
import type { Starts } from './operations/starts.ts'
import type { Spares } from './spares/contract.ts'
import type { TemplateMetrics } from './templates/metrics.ts'
import type { Templates } from './templates/contract.ts'

/** What the server's own VMs are made with. */
export interface BaseContext {
  readonly settings: Settings
  readonly dataDir: string
  readonly hostId: string
  /** whether each VM can be given a user of its own */
  readonly separateUsers: boolean
  readonly log: Logger
  readonly events: EventBus
  readonly commands: HostCommands
  readonly disk: DiskSpace
  readonly processes: ProcessRegister
  readonly guest: GuestService
  readonly images: ImageService
  /** undefined without the plugin networking: no new instance has a network then */
  readonly network: NetworkService | undefined
  /** undefined without the plugin egress: no new instance has a mediated way out then */
  readonly egress: EgressService | undefined
  /** undefined without the plugin resources: nobody asks whether there is room */
  readonly resources: ResourceService | undefined
  /** undefined without the plugin volumes */
  readonly volumes: VolumeService | undefined
  /** what an instance holds, in the order in which it is reserved */
  readonly parts: readonly InstancePart[]
  readonly hypervisors: ReadonlyMap<string, HypervisorDriver>
  /** which plugins run, and why the others do not */
  readonly plugins: PluginReports
  readonly repository: InstanceRepository
  readonly instances: InstanceSet
  /** rows of VMs that are nobody's instance; see spares/hidden.ts */
  readonly hidden: Set<InstanceRecord>
  readonly locks: Locks
  /** by instance: the disconnecting of its last VM; the next connect of the instance waits for it */
  readonly behind: Behind
  /** kinds of memory images from which a VM has gone on since the start of the server; see memory-image/keep.ts */
  readonly provenImages: Set<string>
  /** turns of the VMs that come up */
  readonly starts: Starts
  /** compressions of memory images of instances in standby */
  readonly compressions: CompressionSchedule
  /** kept VMs of instances in standby */
  readonly kept: KeptVms
  readonly keptMetrics: KeptMetrics
  readonly metrics: InstanceMetrics
  /** timers of instances, for what is due at some time */
  readonly alarms: Alarms
  /** leases that keep instances awake */
  readonly leases: Leases
  /** by instance: the monitor of its health */
  readonly monitors: Map<string, Monitor>
  /** what is tried again until it is done; see parts/later.ts */
  readonly later: Set<string>
  /** aborts when the server ends: work that nobody waits for is left to the next one */
  readonly closing: AbortController
}

export interface Context extends BaseContext {
  readonly templates: Templates
  readonly spares: Spares
  readonly ways: TemplateMetrics
}

export function pathsIn (context: BaseContext, id: string): InstancePaths {
  return pathsOf(context.dataDir, id)
}

/** The user that an instance's VM runs as, and who owns its files; undefined when it is the server's own. Without a number it is one that no VM runs as: see users/. */
export function identityOf (context: BaseContext, { slot }: Pick<InstanceRecord, 'slot'>): Identity | undefined {
  if (!context.separateUsers) return undefined
  const id = context.settings.vmUserBase + (slot ?? -1)
  return { uid: id, gid: id }
}

/** Makes the instance in memory. Its changes of state are counted and emitted as events. */
export function liveInstance (context: Context, record: InstanceRecord): LiveInstance {
  return new LiveInstance(record, context.repository, () => context.network?.addressOf(record.id), (instance, from) => {
    context.metrics.moved(from, instance.state)
    if (!TRANSITIONS[from].includes(instance.state)) context.log.error({ instance: instance.id, from, to: instance.state }, 'a move between states that is none')
    context.events.emit('instance.state', { id: instance.id, from, to: instance.state })
  })
}
