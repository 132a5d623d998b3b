// What is stored of the phases of an instance's life.
import type { Moment } from '../life/moment.ts'

export const PHASES = ['creating', 'initializing', 'running', 'standby', 'stopped'] as const
export type Phase = typeof PHASES[number]

export interface PhaseState {
  readonly name: Phase
  readonly since: Moment
  /** ms in each phase, without the present stay */
  readonly spentMs: Readonly<Partial<Record<Phase, number>>>
}
