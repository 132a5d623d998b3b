// How many VMs come up at once, by whom, and how long one may keep the others.
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { processorsOfHost } from '../../../../core/process/host-processors.ts'
import { createStarts, inTurn, type StartTurn } from '../../../../plugins/instances/operations/starts.ts'
import { eventually } from '../../../helpers/eventually.ts'

t.test('without a setting as many come up at once as there are processors, and two at least', async (t) => {
  const starts = createStarts(undefined)
  const begun: StartTurn[] = []
  for (let index = 0; index < 200; index++) void starts.turn(undefined).then((each) => { begun.push(each) })
  await turn()
  t.equal(begun.length, Math.max(2, processorsOfHost()))
  for (const each of begun.splice(0)) each.end()
  await eventually('the next ones begin', async () => await Promise.resolve(begun.length === Math.max(2, processorsOfHost())))
})

t.test('keys take turns: who asks for one VM waits for none of the twenty of somebody else that have not begun', async (t) => {
  const starts = createStarts(1)
  const order: string[] = []
  const ask = (key: string, count: number): Promise<unknown>[] => Array.from({ length: count }, async () => {
    await inTurn({ starts }, key, async () => {
      order.push(key)
      await turn()
    })
  })
  await Promise.all([...ask('greedy', 20), ...ask('modest', 1)])
  t.equal(order.length, 21)
  t.ok(order.indexOf('modest') <= 2, order.slice(0, 4).join())
})

t.test('a guest whose program does not start keeps the others for a while only', async (t) => {
  const starts = createStarts(1, 50)
  // What ends a turn keeps no process alive.
  const alive = setInterval(() => {}, 1000)
  t.teardown(() => { clearInterval(alive) })
  const asked = performance.now()
  const first = await starts.turn(undefined)
  first.endWith(Object.assign(Object.create(null), { started: new Promise(() => {}), ended: new Promise(() => {}) }))
  await starts.turn(undefined)
  t.ok(performance.now() - asked >= 45)
})

t.test('a guest whose program has started keeps nobody', async (t) => {
  const starts = createStarts(1, 3_600_000)
  const first = await starts.turn(undefined)
  first.endWith(Object.assign(Object.create(null), { started: Promise.resolve(), ended: new Promise(() => {}) }))
  t.ok(await starts.turn(undefined))
})

t.test('what fails gives its turn to the next', async (t) => {
  const starts = createStarts(1)
  await t.rejects(inTurn({ starts }, undefined, async () => { await Promise.resolve(); throw new Error('it failed') }), /it failed/)
  t.equal(await inTurn({ starts }, undefined, async () => await Promise.resolve('done')), 'done')
})

t.test('when the server begins to stop, callers wait no longer, and what the server does by itself goes on', async (t) => {
  const starts = createStarts(1)
  const first = await starts.turn('a')
  const waiting = starts.turn('b')
  const own = starts.turn(undefined)
  starts.refuse()
  await t.rejects(waiting, { message: 'the server is stopping; try again' })
  await t.rejects(starts.turn('c'), { message: 'the server is stopping; try again' })
  first.end()
  const turnOfServer = await own
  turnOfServer.end()
})
