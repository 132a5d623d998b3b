// Moments that a clock setting does not move: each is written as time of day and as uptime of the host. The uptime goes on over restarts of the server.
import { uptime } from 'node:os'
import { bootId } from '../../../core/process/identity.ts'

export interface Moment {
  /** epoch `ms`, by the clock at the time of writing */
  readonly at: number
  /** the boot of the host that the uptime belongs to */
  readonly boot: string
  readonly uptimeMs: number
}

export interface LifeClock {
  /** epoch `ms` */
  now (): number
  uptimeMs (): number
  readonly boot: string
}

export const hostClock: LifeClock = { now: () => Date.now(), uptimeMs: () => uptime() * 1000, boot: bootId() }

/** The moment in `ms` from now. */
export function momentIn (ms: number, clock: LifeClock): Moment {
  return { at: Math.round(clock.now() + ms), boot: clock.boot, uptimeMs: Math.round(clock.uptimeMs() + ms) }
}

/** By the host's uptime; after another boot of the host only the clock is left to tell. */
export function msUntil ({ at, boot, uptimeMs }: Moment, clock: LifeClock): number {
  return boot === clock.boot ? uptimeMs - clock.uptimeMs() : at - clock.now()
}

/** The same moment for the present boot, so that a clock that is set from now on does not move it. */
export function rebased<M extends Moment> (moment: M, clock: LifeClock): M {
  if (moment.boot === clock.boot) return moment
  return { ...moment, boot: clock.boot, uptimeMs: Math.round(clock.uptimeMs() + msUntil(moment, clock)) }
}
