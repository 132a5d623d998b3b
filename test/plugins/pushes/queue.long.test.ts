// The line of pushes, what is forgotten, and what a stop of the server does to both.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { startGatedRegistry, type GatedRegistry } from '../../helpers/gated-registry.ts'
import type { ImagesApp } from '../../helpers/images-app.ts'
import { pushLayout } from '../../helpers/oci.ts'
import { LOGIN, startUpstreamRegistry } from '../../helpers/upstream-registry.ts'
import { ended, startPushesApp, textLayout, until } from './app.ts'
import { eventually } from '../../helpers/eventually.ts'

interface Scene {
  readonly app: ImagesApp
  /** in front of where the images come from */
  readonly gate: GatedRegistry
  /** an image that is here */
  readonly image: (number: number) => string
  /** a target of its own, which has nothing yet */
  readonly target: (number: number) => string
}

async function startScene (t: Test, images: number, config: Record<string, unknown>): Promise<Scene> {
  const [origin, target] = await Promise.all([startUpstreamRegistry(t), startUpstreamRegistry(t)])
  const gate = await startGatedRegistry(t, origin.host)
  const app = await startPushesApp(t, { images: { pullConcurrency: 4 } }, config)
  const image = (number: number): string => `${gate.host}/image-${number}:1`
  for (let number = 0; number < images; number++) {
    await pushLayout(await textLayout(t, `image ${number}`), image(number).replace(gate.host, origin.host))
    await app.sdk.images.create({ name: image(number) })
  }
  for (let number = 0; number < images; number++) await app.settled(image(number))
  return { app, gate, image, target: (number) => `${target.host}/image-${number}:1` }
}

t.test('two at a time, in the order in which they were asked for, and the list is newest first', async (t) => {
  const { app, gate, image, target } = await startScene(t, 5, {})
  gate.hold()
  const ids: string[] = []
  for (let number = 0; number < 5; number++) ids.push((await app.sdk.pushes.create({ image: image(number), target: target(number) })).id)
  for (const id of ids.slice(0, 2)) await until(app, id, ({ status }) => status === 'pushing')
  await gate.held()
  const shown = (await app.sdk.pushes.list()).map(({ id, status, queue_position: position }) => [ids.indexOf(id), status, position])
  t.same(shown, [[4, 'queued', 3], [3, 'queued', 2], [2, 'queued', 1], [1, 'pushing', null], [0, 'pushing', null]])

  const page = await app.request('GET', '/pushes?limit=2')
  t.match(page.body, [{ id: ids[4] }, { id: ids[3] }])
  const next = /<([^>]+)>; rel="next"/.exec(page.headers.get('link') ?? '')?.[1] ?? ''
  t.match((await app.request('GET', next)).body, [{ id: ids[2] }, { id: ids[1] }])

  gate.release()
  for (const id of ids) t.match(await ended(app, id), { status: 'pushed', queue_position: null, error: null })
})

t.test('only the newest of the finished are remembered', async (t) => {
  const { app, image, target } = await startScene(t, 1, { keepFinished: 2, concurrency: 1 })
  const ids: string[] = []
  for (let number = 0; number < 4; number++) {
    const { id } = await app.sdk.pushes.create({ image: image(0), target: target(number) })
    await ended(app, id)
    ids.unshift(id)
  }
  await until(app, String(ids[0]), ({ status }) => status === 'pushed')
  // A push has ended just before the older ones go.
  await eventually('the older ones are gone', async () => (await app.sdk.pushes.list()).length <= 2)
  t.same((await app.sdk.pushes.list()).map(({ id }) => id), ids.slice(0, 2))
})

t.test('after a restart pushes go on in their order, but for those with credentials, which have failed', async (t) => {
  const { app, gate, image, target } = await startScene(t, 4, { concurrency: 1 })
  gate.hold()
  const running = await app.sdk.pushes.create({ image: image(0), target: target(0) })
  await gate.held()
  const lent = await app.sdk.pushes.create({ image: image(1), target: target(1), credentials: LOGIN })
  const waiting = []
  for (const number of [2, 3]) waiting.push((await app.sdk.pushes.create({ image: image(number), target: target(number) })).id)
  await until(app, running.id, ({ status }) => status === 'pushing')
  await app.stop()
  t.same(await readdir(join(app.dataDir, 'pushes')), [], 'a stop ends what runs')

  const next = await app.restart()
  t.match(await next.sdk.pushes.get(lent.id), { status: 'failed', error: /was interrupted by a restart of the server.*push the image again with them/, completed_at: String })
  t.match(await until(next, running.id, ({ status }) => status === 'pushing'), { queue_position: null })
  t.same(await Promise.all(waiting.map(async (id) => (await next.sdk.pushes.get(id)).queue_position)), [1, 2])
  gate.release()
  for (const id of [running.id, ...waiting]) t.match(await ended(next, id), { status: 'pushed', error: null })
})

t.test('a running push with credentials has failed after a restart', async (t) => {
  const { app, gate, image, target } = await startScene(t, 1, {})
  gate.hold()
  const { id } = await app.sdk.pushes.create({ image: image(0), target: target(0), credentials: LOGIN })
  await until(app, id, ({ status }) => status === 'pushing')
  await gate.held()
  const next = await app.restart()
  t.match(await next.sdk.pushes.get(id), { status: 'failed', error: /was interrupted/ })
  gate.release()
  const again = await next.sdk.pushes.create({ image: image(0), target: target(0), credentials: LOGIN })
  t.match(await ended(next, again.id), { status: 'pushed' }, 'pushed again, it arrives')
})
