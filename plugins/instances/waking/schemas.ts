// The shape of `wake`, which says who may wake an instance.
import { oneOf } from '../../../core/http/schemas.ts'

/** `standby` when nothing was asked for. */
const WAKE_POLICIES = ['never', 'standby', 'always'] as const
export type WakePolicy = typeof WAKE_POLICIES[number]

export const WakePolicySchema = oneOf(WAKE_POLICIES, {
  description: 'What a connection to a published port or an ingress does to an instance that sleeps. standby, when absent: restores it; always: starts it as well when it is Stopped; never: nothing'
})
