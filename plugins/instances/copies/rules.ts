// The rules for requests that make something of a copy.
import { InvalidRequest, InvalidState } from '../../../core/errors/common.ts'
import { hypervisorAbsent } from '../host/absent-hypervisor.ts'
import type { Context } from '../context.ts'
import type { CopyRequest, InstanceCopy, InstanceState } from '../contract.ts'
import { requireProvenImaging } from '../memory-image/imaging.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { driverOf, requireAvailable } from '../operations/launch.ts'
import type { TargetState } from '../operations/fork.ts'
import type { InstanceSpec } from '../model/record.ts'
import { requireOneOf } from '../model/state.ts'
import { detailsOf } from './copy.ts'

/** What the instance made of a copy is to be. */
export interface CopyPlan {
  readonly target: TargetState
  /** whether it goes on from the copy's memory */
  readonly withMemory: boolean
  readonly spec: InstanceSpec
  readonly newMachine: boolean
}

/** @throws invalid_request, plugin_disabled, not_supported */
export async function planFor (context: Context, call: string, copy: InstanceCopy, request: CopyRequest): Promise<CopyPlan> {
  const { created, newMachine } = detailsOf(copy)
  const target = targetOf(copy, request)
  const withMemory = copy.kind === 'Standby' && target !== 'Stopped'
  const spec = { ...created, hypervisor: hypervisorOf(context, copy, request) }
  if (target !== 'Stopped' || request.hypervisor !== undefined) await requireAvailable(context, request.hypervisor === undefined ? call : 'target_hypervisor', driverOf(context, { spec }))
  if (withMemory) await requireProvenImaging(context, call, { spec })
  return { target, withMemory, spec, newMachine }
}

function targetOf ({ kind }: InstanceCopy, { targetState }: CopyRequest): TargetState {
  if (kind === 'Standby') return targetState ?? 'Running'
  if (targetState === 'Standby') throw InvalidRequest('target_state: a snapshot of kind Stopped holds no memory, so what is made of it can be Stopped or Running')
  return targetState ?? 'Stopped'
}

function hypervisorOf ({ hypervisors, plugins }: Context, { kind, hypervisor }: InstanceCopy, { hypervisor: asked }: CopyRequest): string {
  if (asked === undefined) return hypervisor
  if (kind === 'Standby') throw InvalidRequest('target_hypervisor: only a snapshot of kind Stopped can change the hypervisor')
  if (!hypervisors.has(asked)) throw hypervisorAbsent(asked, 'target_hypervisor', plugins)
  return asked
}

/** @throws invalid_state unless the instance is in one of these states, and is not being deleted */
export function requireActive (call: string, { name, record, derived }: LiveInstance, states: readonly InstanceState[]): void {
  requireOneOf(call, name, derived, states)
  if (record.status !== 'active') throw InvalidState(`${call}: instance ${name} is being deleted`)
}
