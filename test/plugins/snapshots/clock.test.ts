// The real clock: work comes again and again, never twice at a time, and not after the end.
import t from 'tap'
import { systemClock } from '../../../plugins/snapshots/clock.ts'

t.test('work is repeated one call after the other, and a stop waits for the one that is under way', async (t) => {
  let [calls, underWay, most] = [0, 0, 0]
  let third = (): void => {}
  const reached = new Promise<void>((resolve) => { third = resolve })
  let go = (): void => {}
  const gate = new Promise<void>((resolve) => { go = resolve })
  const repetition = systemClock.every(1, async () => {
    most = Math.max(most, ++underWay)
    if (++calls === 3) {
      third()
      await gate
    }
    underWay--
  })
  // The clock's own timer keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  await reached
  const stopped = repetition.stop()
  let isStopped = false
  void stopped.then(() => { isStopped = true })
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(isStopped, false)
  go()
  await stopped
  clearInterval(alive)
  t.strictSame([calls, most, underWay], [3, 1, 0])
})

t.test('a stop does not wait for the time to pass', async (t) => {
  let calls = 0
  const repetition = systemClock.every(3_600_000, async () => { calls++ })
  await repetition.stop()
  await repetition.stop()
  t.equal(calls, 0)
})
