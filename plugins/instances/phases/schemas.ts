// The shapes of phases in an answer.
import { Type } from 'typebox'
import { oneOf, Timestamp } from '../../../core/http/schemas.ts'
import { hostClock } from '../life/moment.ts'
import type { InstanceRecord } from '../model/record.ts'
import { firstPhase } from './phase.ts'
import { PHASES } from './record.ts'

export const PhaseFields = {
  current_phase: oneOf(PHASES, { description: 'Of the instance\'s life, as its row has it' }),
  current_phase_since: Timestamp,
  phase_durations_ms: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), { description: 'How long it was in each phase, without the present stay, which current_phase_since tells' })
}

export function phaseView (record: InstanceRecord) {
  const { name, since, spentMs } = record.life.phase ?? firstPhase(record, hostClock)
  return { current_phase: name, current_phase_since: new Date(since.at).toISOString(), phase_durations_ms: { ...spentMs } }
}
