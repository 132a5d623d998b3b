// Turns the bodies of the API's requests into what is asked for. Checks every rule that needs no look at anything else, in a fixed order.
import { InvalidRequest } from '../../../core/errors/common.ts'
import { checkAutoStandby } from '../auto-standby/validate.ts'
import type { Settings } from '../config.ts'
import { checkLifetime } from '../expiry/validate.ts'
import { checkHealthCheck } from '../health/validate.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { InstanceChanges, InstanceForkRequest, InstanceRequest, VolumeAttachment } from '../model/request.ts'
import { checkRestartPolicy } from '../restart/validate.ts'
import type { AttachVolume, CreateInstance, ForkInstance, UpdateInstance } from '../api/schemas.ts'
import { checkEnv } from './env.ts'
import { checkSizes } from './sizes.ts'
import { checkSnapshotPolicy } from './snapshot-policy.ts'
import { checkMountPath, checkVolumes } from './volumes.ts'

/** The request with the defaults filled in. @throws for the first rule that it breaks */
export function createRequestOf (body: CreateInstance, settings: Settings, caller?: string): InstanceRequest {
  const { bandwidth, ...sizes } = checkSizes(body, settings)
  const vcpus = checkVcpus(body.vcpus ?? settings.defaults.vcpus, settings)
  checkEnv('env', body.env)
  const snapshotPolicy = checkSnapshotPolicy(body.snapshot_policy)
  const lifetime = checkLifetime(body)
  const restartPolicy = checkRestartPolicy(body.restart_policy)
  const healthCheck = checkHealthCheck(body.health_check, body.skip_guest_agent === true)
  const autoStandby = checkAutoStandby(body.auto_standby)
  const volumes = checkVolumes(body.volumes, settings)
  return {
    name: body.name,
    ...(caller === undefined ? {} : { caller }),
    image: body.image,
    spec: {
      ...(body.cmd === undefined ? {} : { cmd: body.cmd }),
      ...(body.entrypoint === undefined ? {} : { entrypoint: body.entrypoint }),
      env: body.env ?? {},
      vcpus,
      ...sizes,
      skipGuestAgent: body.skip_guest_agent ?? false,
      skipKernelHeaders: body.skip_kernel_headers ?? false,
      ...(snapshotPolicy === undefined ? {} : { snapshotPolicy }),
      ...(volumes.length === 0 ? {} : { volumes }),
      tags: body.tags ?? {},
      ...(lifetime === undefined ? {} : { lifetime }),
      ...(healthCheck === undefined ? {} : { healthCheck }),
      ...(autoStandby === undefined ? {} : { autoStandby }),
      ...(restartPolicy === undefined ? {} : { restartPolicy }),
      ...(body.wake === undefined ? {} : { wake: body.wake })
    },
    credentials: body.credentials ?? {},
    ...(body.hypervisor === undefined ? {} : { hypervisor: body.hypervisor }),
    network: { ...networkIn(body), ...bandwidth },
    devices: body.devices ?? [],
    ...(body.gpu?.profile === undefined ? {} : { gpuProfile: body.gpu.profile }),
    ports: body.ports ?? []
  }
}

/** @throws invalid_request */
export function checkVcpus (vcpus: number, { limits: { maxVcpus } }: Settings): number {
  if (vcpus > maxVcpus) throw InvalidRequest(`vcpus: must be at most ${maxVcpus}`)
  return vcpus
}

/** @throws InvalidRequest when the request has settings of mediated egress without asking for it */
function networkIn ({ network, credentials = {} }: CreateInstance): InstanceRequest['network'] {
  const { enabled: isMediated, enforcement } = network?.egress ?? {}
  // Whoever names rules and forgets the switch must not get a machine without rules.
  if (isMediated === undefined && enforcement !== undefined) throw InvalidRequest('network.egress.enabled: required with network.egress.enforcement; false stands for a direct way out')
  if (isMediated !== true && Object.keys(credentials).length > 0) throw InvalidRequest('credentials: need network.egress.enabled: true')
  return { ...(network?.enabled === undefined ? {} : { enabled: network.enabled }), ...(isMediated === true ? { mediated: enforcement?.mode ?? 'all' } : {}) }
}

/** @param spec of the instance as it is @throws for the first rule that the request breaks */
export function changesOf (body: UpdateInstance, { skipGuestAgent }: InstanceSpec): InstanceChanges {
  const lifetime = checkLifetime(body)
  const healthCheck = checkHealthCheck(body.health_check, skipGuestAgent)
  const restartPolicy = checkRestartPolicy(body.restart_policy)
  const autoStandby = checkAutoStandby(body.auto_standby)
  return {
    ...(body.env === undefined ? {} : { env: body.env }),
    ...(lifetime === undefined ? {} : { lifetime }),
    ...(body.health_check === undefined ? {} : { healthCheck: healthCheck ?? 'none' }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
    ...(autoStandby === undefined ? {} : { autoStandby }),
    ...(body.wake === undefined ? {} : { wake: body.wake })
  }
}

export function forkRequestOf ({ name, from_running: fromRunning = false, target_state: targetState, env }: ForkInstance, caller?: string): InstanceForkRequest {
  return { name, fromRunning, ...(targetState === undefined ? {} : { targetState }), ...(env === undefined ? {} : { env }), ...(caller === undefined ? {} : { caller }) }
}

/** @throws invalid_request */
export function attachmentOf ({ mount_path: mountPath, readonly = false }: AttachVolume): VolumeAttachment {
  return { mountPath: checkMountPath('mount_path', mountPath), readonly }
}
