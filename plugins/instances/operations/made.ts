// What all ways of creating an instance have in common: what is asked for, and the result.
import type { ReadyImage } from '../../images/contract.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import type { GuestSession } from '../guest/guest-session.ts'
import type { Asked } from '../model/request.ts'
import type { InstanceSpec } from '../model/record.ts'
import type { Shape } from '../templates/contract.ts'
import type { CreateWay } from '../templates/metrics.ts'
import type { Steps } from './steps.ts'

/** An instance that is to be made. */
export interface Creation extends Asked {
  readonly name: string
  readonly spec: InstanceSpec
  readonly image: ReadyImage
  /** of the VMs made ahead that it could be; undefined: none could */
  readonly shape: Shape | undefined
  readonly steps: Steps
}

/** An instance that is complete, but not listed yet. */
export interface Made {
  readonly instance: LiveInstance
  readonly session: GuestSession
  readonly way: CreateWay
}
