// How many spare VMs a burst of creates asks for, and of which template.
import t from 'tap'
import { createDemand } from '../../../../plugins/instances/spares/demand.ts'
import { until } from '../crash.ts'
import { alive, startWithTemplates } from '../templates-app.ts'

t.test('a burst that found too few asks for as many as it was, until it is forgotten', async (t) => {
  let now = 0
  const demand = createDemand(600_000, () => now)
  t.equal(demand.of('a'), 0)
  for (let i = 0; i < 16; i++) demand.note('a', i === 0)
  t.equal(demand.of('a'), 16)
  t.equal(demand.of('b'), 0, 'of another shape nothing')
  now = 599_000
  t.equal(demand.of('a'), 16)
  now = 600_000
  t.equal(demand.of('a'), 0)
  demand.note('a', false)
  t.equal(demand.of('a'), 1)
})

t.test('creates that find what they need ask for no more, however many they are', async (t) => {
  let now = 0
  const demand = createDemand(600_000, () => now)
  demand.note('a', false)
  for (let i = 0; i < 5; i++) demand.note('a', true)
  t.equal(demand.of('a'), 1)
  now = 20_000
  for (let i = 0; i < 3; i++) {
    now += 11_000
    demand.note('a', false)
  }
  t.equal(demand.of('a'), 1, 'nor those that are far apart')
})

t.test('a burst as large as the last one keeps what there is', async (t) => {
  let now = 0
  const demand = createDemand(60_000, () => now)
  for (let i = 0; i < 4; i++) demand.note('a', false)
  now = 50_000
  for (let i = 0; i < 4; i++) demand.note('a', true)
  now = 100_000
  t.equal(demand.of('a'), 4)
  now = 110_000
  t.equal(demand.of('a'), 0)
})

t.test('after creates that found no spare VM as many are made ready as were asked for at once', async (t) => {
  const app = await startWithTemplates(t, { config: { templates: { maxSpares: 3 } } })
  await app.warmUp()
  t.equal(await app.count('spares'), 1)
  await Promise.all(['second', 'third', 'fourth'].map(async (name) => await app.make(name)))
  await until(async () => await app.count('spares') === 3)
  const ways = await Promise.all((await Promise.all(['fifth', 'sixth', 'seventh'].map(async (name) => await app.make(name)))).map(app.wayOf))
  t.same(ways, ['from a spare VM', 'from a spare VM', 'from a spare VM'])
})

t.test('what spare VMs of one template cannot, those of another may', async (t) => {
  const app = await startWithTemplates(t)
  app.host.replacesDisks = false
  await app.make('first')
  await until(async () => await app.count('templates') === 1 && alive(app).length === 1)
  app.host.replacesDisks = true
  await app.make('second', { size: '256MB' })
  await until(async () => await app.count('spares') === 1)
  t.equal(await app.wayOf(await app.make('third', { size: '256MB' })), 'from a spare VM')
})
