// What is asked of a new instance, by a request of the API or by another plugin.
import type { AutoStandbyPolicy } from '../auto-standby/policy.ts'
import type { EgressRequest } from '../egress/contract.ts'
import type { Lifetime } from '../expiry/expiry.ts'
import type { HealthCheck } from '../health/check.ts'
import type { InstanceSpec, NetworkSpec, PortSpec, VolumeSpec } from './record.ts'
import type { RestartPolicy } from '../restart/policy.ts'
import type { MediatedMode } from '../../../proxy/contract/modes.ts'

/** What depends on the server, or is no wish. */
type Decided = 'hypervisor' | 'network' | 'egress' | 'devices' | 'gpu' | 'ports' | 'worker'

/** It keeps all rules that need no look at anything; whether this server can do it is not judged yet. */
export interface InstanceRequest {
  readonly name: string
  readonly image: string
  /** What is asked as it will be kept; the variables are those of the caller, and volumes are named as the caller names them. */
  readonly spec: Omit<InstanceSpec, Decided>
  readonly credentials: EgressRequest['credentials']
  /** absent: the configured one */
  readonly hypervisor?: string
  /** `enabled` absent: with a network where there is one. `mediated`: by a policy of this mode; absent: directly */
  readonly network: Partial<NetworkSpec> & { readonly mediated?: MediatedMode }
  /** as the caller calls them */
  readonly devices: readonly string[]
  readonly gpuProfile?: string
  readonly ports: readonly PortSpec[]
}

/** What is to be other than it is. */
export interface InstanceChanges {
  /** values of variables that credentials take theirs from */
  readonly env?: Readonly<Record<string, string>>
  readonly lifetime?: Lifetime
  readonly healthCheck?: HealthCheck | 'none'
  readonly autoStandby?: AutoStandbyPolicy
  readonly restartPolicy?: RestartPolicy
  readonly wake?: InstanceSpec['wake']
}

/** For a start and all later ones. */
export type StartOverrides = Pick<InstanceSpec, 'cmd' | 'entrypoint'>

export interface InstanceForkRequest {
  readonly name: string
  /** whether the source may run, and is paused meanwhile */
  readonly fromRunning: boolean
  /** absent: that of the source */
  readonly targetState?: 'Stopped' | 'Standby' | 'Running'
  readonly env?: Readonly<Record<string, string>>
}

/** How an instance is to have one more volume. */
export type VolumeAttachment = Pick<VolumeSpec, 'mountPath' | 'readonly'>
