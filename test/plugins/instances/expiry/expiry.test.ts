// How long an instance lives, by clocks in the test's hands.
import t from 'tap'
import { expiryOf, msToLive } from '../../../../plugins/instances/expiry/expiry.ts'
import { rebased, type LifeClock } from '../../../../plugins/instances/life/moment.ts'

const HOUR = 3_600_000
const at = (now: number, uptime: number, boot = 'first'): LifeClock => ({ now: () => now, uptimeMs: () => uptime, boot })
const made = at(1_000_000_000, 50_000)

t.test('a ttl goes by the time that passes, and not by the clock', async (t) => {
  const expiry = expiryOf({ ttlMs: HOUR }, made)
  t.same(expiry, { at: 1_000_000_000 + HOUR, boot: 'first', uptimeMs: 50_000 + HOUR, by: 'ttl' })
  if (expiry === undefined) return
  t.equal(msToLive(expiry, made), HOUR)
  t.equal(msToLive(expiry, at(1_000_000_000 + 100 * HOUR, 50_000 + 1000)), HOUR - 1000, 'a clock that was set ahead')
  t.equal(msToLive(expiry, at(0, 50_000 + HOUR)), 0, 'a clock that was set back')
})

t.test('a time of day needs both the time that was left and the clock', async (t) => {
  const expiry = expiryOf({ expiresAt: 1_000_000_000 + HOUR }, made)
  t.match(expiry, { at: 1_000_000_000 + HOUR, by: 'time' })
  if (expiry === undefined) return
  t.equal(msToLive(expiry, at(1_000_000_000 + 100 * HOUR, 50_000)), HOUR, 'a clock that was set ahead')
  t.equal(msToLive(expiry, at(1_000_000_000 - HOUR, 50_000 + HOUR)), 2 * HOUR, 'a clock that was ahead when it was asked for')
  t.equal(msToLive(expiry, at(1_000_000_000 + HOUR, 50_000 + HOUR)), 0)
})

t.test('after another boot of the host the clock tells, and from then on the time that passes', async (t) => {
  const expiry = expiryOf({ ttlMs: HOUR }, made)
  if (expiry === undefined) return t.fail('it expires')
  const booted = at(1_000_000_000 + HOUR / 2, 10, 'second')
  t.equal(msToLive(expiry, booted), HOUR / 2)
  const after = rebased(expiry, booted)
  t.match(after, { at: expiry.at, boot: 'second', by: 'ttl' })
  t.equal(msToLive(after, at(1_000_000_000 + 100 * HOUR, 10, 'second')), HOUR / 2, 'a clock that was set ahead')
  t.equal(rebased(after, booted), after)
})

t.test('no lifetime and a ttl of 0 are no expiry', async (t) => {
  t.equal(expiryOf(undefined, made), undefined)
  t.equal(expiryOf({ ttlMs: 0 }, made), undefined)
})
