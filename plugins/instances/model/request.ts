// What is asked of a new instance, by a request of the API or by another plugin.
import type { AutoStandbyPolicy } from '../auto-standby/policy.ts'
import type { EgressRequest } from '../egress/contract.ts'
import type { Lifetime } from '../expiry/expiry.ts'
import type { HealthCheck } from '../health/check.ts'
import type { InstanceSpec, NetworkSpec, PortSpec, VolumeSpec } from './record.ts'
import type { RestartPolicy } from '../restart/policy.ts'
import type { MediatedMode } from '../../../proxy/contract/modes.ts'

/** fields that depend on the server, or that no request asks for */
type Decided = 'hypervisor' | 'network' | 'egress' | 'devices' | 'gpu' | 'ports' | 'worker'

/** By whom something is asked that takes a VM's start. */
export interface Asked {
  /** the id of the API key; absent: the server itself */
  readonly caller?: string | undefined
}

/** A request that keeps all rules which need no look at anything else. Whether this server can serve it is not judged yet. */
export interface InstanceRequest extends Asked {
  readonly name: string
  readonly image: string
  /** the spec as it will be stored, except that variables are those of the caller, and volumes have the names that the caller used */
  readonly spec: Omit<InstanceSpec, Decided>
  readonly credentials: EgressRequest['credentials']
  /** absent: the configured one */
  readonly hypervisor?: string
  /** `enabled` absent: with a network if the server has one. `mediated`: egress by a policy of this mode; absent: direct egress */
  readonly network: Partial<NetworkSpec> & { readonly mediated?: MediatedMode }
  /** by the names that the caller used */
  readonly devices: readonly string[]
  readonly gpuProfile?: string
  readonly ports: readonly PortSpec[]
}

/** The changes that an update asks for. */
export interface InstanceChanges {
  /** values of the variables that credentials take theirs from */
  readonly env?: Readonly<Record<string, string>>
  readonly lifetime?: Lifetime
  readonly healthCheck?: HealthCheck | 'none'
  readonly autoStandby?: AutoStandbyPolicy
  readonly restartPolicy?: RestartPolicy
  readonly wake?: InstanceSpec['wake']
}

/** Hold for this start and all later ones. */
export type StartOverrides = Pick<InstanceSpec, 'cmd' | 'entrypoint'>

export interface InstanceForkRequest extends Asked {
  readonly name: string
  /** whether the source may run, and is paused meanwhile */
  readonly fromRunning: boolean
  /** absent: that of the source */
  readonly targetState?: 'Stopped' | 'Standby' | 'Running'
  readonly env?: Readonly<Record<string, string>>
}

/** How an instance is to have one more volume. */
export type VolumeAttachment = Pick<VolumeSpec, 'mountPath' | 'readonly'>
