// The pause between two heartbeats.
import t from 'tap'
import { createPause } from '../../../../core/library/vmm/wake-pause.ts'

await t.test('it can be ended early', async (t) => {
  const pause = createPause()
  const paused = pause.start(60_000)
  pause.end()
  await paused
  t.pass()
})

await t.test('an end that comes between two pauses skips the next one, and only that', async (t) => {
  const pause = createPause()
  pause.end()
  pause.end()
  await pause.start(60_000)
  let over = false
  const second = pause.start(60_000).then(() => { over = true })
  await new Promise(setImmediate)
  t.equal(over, false)
  pause.end()
  await second
})

await t.test('it ends by itself', async (t) => {
  // The pause alone does not keep the process alive.
  const alive = setTimeout(() => {}, 60_000)
  await createPause().start(5)
  clearTimeout(alive)
  t.pass()
})
