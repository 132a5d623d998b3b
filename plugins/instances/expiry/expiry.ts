// When an instance is deleted by itself. Pure.
import { hostClock, momentIn, msUntil, type LifeClock, type Moment } from '../life/moment.ts'

/** What a caller asks for. */
export type Lifetime = { readonly ttlMs: number } | { readonly expiresAt: number }

/** `ttl`: some time has to pass; `time`: a time of day has to come as well. */
export interface Expiry extends Moment { readonly by: 'ttl' | 'time' }

/** The expiry of a lifetime that begins now. Undefined: never. */
export function expiryOf (lifetime: Lifetime | undefined, clock: LifeClock = hostClock): Expiry | undefined {
  if (lifetime === undefined) return undefined
  if ('ttlMs' in lifetime) return lifetime.ttlMs === 0 ? undefined : { ...momentIn(lifetime.ttlMs, clock), by: 'ttl' }
  return { ...momentIn(Math.max(0, lifetime.expiresAt - clock.now()), clock), at: lifetime.expiresAt, by: 'time' }
}

/** A clock that is set ahead brings no expiry nearer. A clock that was ahead and is set back delays an expiry at a time of day. */
export function msToLive (expiry: Expiry, clock: LifeClock = hostClock): number {
  const left = msUntil(expiry, clock)
  return expiry.by === 'ttl' ? left : Math.max(left, expiry.at - clock.now())
}
