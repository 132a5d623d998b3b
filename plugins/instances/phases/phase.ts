// The phases of an instance's life and the time in each. They are written with the change of the row that begins another phase, so that neither is there without the other.
import { momentIn, msUntil, type LifeClock } from '../life/moment.ts'
import type { InstanceRecord, RecordPatch } from '../model/record.ts'
import { stateIn } from '../model/stored-state.ts'
import type { Phase, PhaseState } from './record.ts'

const BY_STATE = { Created: 'creating', Initializing: 'initializing', Running: 'running', Standby: 'standby', Stopped: 'stopped' } as const

function phaseIn (record: InstanceRecord): Phase {
  return BY_STATE[stateIn(record)]
}

/** The change, with the phase that it begins. */
export function withPhase (record: InstanceRecord, patch: RecordPatch, clock: LifeClock): RecordPatch {
  const next = { ...record, ...patch }
  const present = record.life.phase ?? firstPhase(record, clock)
  const name = phaseIn(next)
  const phase = name === present.name ? present : { name, since: momentIn(0, clock), spentMs: { ...present.spentMs, [present.name]: (present.spentMs[present.name] ?? 0) + stayMs(present, clock) } }
  return { ...patch, life: { ...next.life, phase } }
}

/** The first phase of a new row, and of a row from before phases were stored: that phase began at the time that the row has for it. */
export function firstPhase (record: InstanceRecord, clock: LifeClock): PhaseState {
  const name = phaseIn(record)
  const began = { creating: record.createdAt, initializing: record.startedAt, running: record.runningAt, standby: record.standbyAt, stopped: record.stoppedAt }[name] ?? record.createdAt
  return { name, since: momentIn(Math.min(0, began - clock.now()), clock), spentMs: {} }
}

function stayMs ({ since }: PhaseState, clock: LifeClock): number {
  return Math.max(0, Math.round(-msUntil(since, clock)))
}
