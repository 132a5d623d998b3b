// Derives an instance's state from facts, and says which calls each state allows. Pure; nothing here looks at anything.
import { InvalidState } from '../../../core/errors/common.ts'
import type { VmState } from '../../../core/library/hypervisor.ts'
import type { InstanceState } from '../contract.ts'

/** How far the guest's program has come, as far as the guest has told. */
export type ProgramPhase = 'unseen' | 'started' | 'exited'

export interface StateFacts {
  /** the VMM's state; undefined when the instance has none, or its end has been settled */
  readonly vm: VmState | undefined
  readonly program: ProgramPhase
  /** whether it has a memory image to be restored from */
  readonly standby: boolean
  /** why nothing can be known, for example: its driver is not enabled */
  readonly problem?: string
  /** why the last restore from that image failed */
  readonly imageProblem?: string
}

export interface DerivedState {
  readonly state: InstanceState
  /** why it is Unknown */
  readonly error?: string
  /** why the last restore failed of an instance in Standby */
  readonly restoreError?: string
}

/** The state that follows from the facts. */
export function deriveState ({ vm, program, standby, problem, imageProblem }: StateFacts): DerivedState {
  if (problem !== undefined) return { state: 'Unknown', error: problem }
  if (vm === undefined && standby) return { state: 'Standby', ...imageProblem === undefined ? {} : { restoreError: imageProblem } }
  if (vm === undefined) return { state: 'Stopped' }
  switch (vm.status) {
    case 'hung': return { state: 'Unknown', error: vm.reason ?? 'the VMM does not answer' }
    case 'paused': return { state: 'Paused' }
    // The VM is gone and not settled: its exit facts are being read, so it is not Stopped yet.
    case 'gone': return { state: 'Shutdown' }
    case 'running': return { state: RUNNING_BY_PROGRAM[program] }
  }
}

const RUNNING_BY_PROGRAM: Readonly<Record<ProgramPhase, InstanceState>> = {
  unseen: 'Initializing',
  started: 'Running',
  exited: 'Shutdown'
}

/** Every change of state that can be seen. A change that is not in this table is a defect. */
export const TRANSITIONS: Readonly<Record<InstanceState, readonly InstanceState[]>> = {
  Created: ['Initializing', 'Running', 'Shutdown', 'Stopped', 'Unknown'],
  // To Shutdown: the program could not start, or ended at once
  Initializing: ['Running', 'Paused', 'Shutdown', 'Stopped', 'Unknown'],
  Running: ['Paused', 'Shutdown', 'Stopped', 'Standby', 'Unknown'],
  Paused: ['Running', 'Initializing', 'Shutdown', 'Stopped', 'Standby', 'Unknown'],
  // To Standby: the VM ended right after its restore, and its image is as it was
  Shutdown: ['Stopped', 'Standby', 'Unknown'],
  // To Standby: by the restore of a snapshot
  Stopped: ['Initializing', 'Running', 'Shutdown', 'Standby', 'Unknown'],
  Standby: ['Paused', 'Initializing', 'Running', 'Stopped', 'Unknown'],
  // From Unknown: the VMM answers again, or has ended.
  Unknown: ['Initializing', 'Running', 'Paused', 'Shutdown', 'Stopped', 'Standby']
}

/** The calls that are only allowed in some states. DELETE is not here: it works in every state. */
export type GuardedCall = 'start' | 'stop' | 'standby' | 'restore' | 'exec' | 'cp' | 'forward' | 'stat'

export const ALLOWED: Readonly<Record<GuardedCall, readonly InstanceState[]>> = {
  start: ['Stopped'],
  stop: ['Running', 'Initializing'],
  standby: ['Running'],
  restore: ['Standby'],
  exec: ['Running'],
  cp: ['Running'],
  forward: ['Running'],
  stat: ['Running']
}

/** @throws InvalidState when the call is not allowed in this state */
export function requireState (call: GuardedCall, name: string, derived: DerivedState): void {
  requireOneOf(call, name, derived, ALLOWED[call])
}

/** @throws InvalidState unless it is in one of these states */
export function requireOneOf (call: string, name: string, derived: DerivedState, allowed: readonly InstanceState[]): void {
  if (!allowed.includes(derived.state)) throw InvalidState(`${call}: instance ${name} must be ${allowed.join(' or ')} (current state: ${stateText(derived)})`)
}

/** The state with what is wrong, for messages. */
export function stateText ({ state, error, restoreError = error }: DerivedState): string {
  return restoreError === undefined ? state : `${state}: ${restoreError}`
}

/** Whether nothing changes the state without a further call: a wait for another state ends there. */
export function isTerminal (state: InstanceState): boolean {
  return state === 'Stopped' || state === 'Standby' || state === 'Unknown'
}
