// Creates that wait for their turn while the server begins to stop.
import t from 'tap'
import { ADMIN_KEY } from '../../../core/bare-app.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { startApp } from '../app.ts'

t.test('a create that waits for its turn is refused when the server begins to stop, and leaves nothing; the one that has begun is answered', async (t) => {
  const app = await startApp(t, { config: { starts: { concurrency: 1 } }, listen: true })
  let asked = 0
  const { images } = app.host
  const { require } = images
  Object.assign(images, { require: async (...of: Parameters<typeof require>) => { asked++; return await require(...of) } })
  let go = (): void => {}
  const gate = new Promise<void>((resolve) => { go = resolve })
  app.host.onLaunch = async () => { await gate }
  const address = app.app.address()
  const create = async (name: string): Promise<{ readonly status: number, readonly body: unknown }> => {
    const answer = await fetch(`${address}/instances`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }, body: JSON.stringify({ name, image: 'test', overlay_size: '32MB' }) })
    return { status: answer.status, body: await answer.json() }
  }
  const begun = create('begun')
  await eventually('the first holds its image', async () => await Promise.resolve(app.host.held.size === 1))
  const waiting = Array.from({ length: 12 }, async (_, index) => await create(`waits-${index}`))
  await eventually('all of them wait', async () => await Promise.resolve(asked === 13))
  const stopped = app.app.stop()
  for (const { status, body } of await Promise.all(waiting)) t.match({ status, body }, { status: 503, body: { code: 'unavailable', message: 'the server is stopping; try again' } })
  t.equal(app.host.held.size, 1)
  go()
  t.equal((await begun).status, 201)
  await stopped
  t.equal(app.host.vms.length, 1)
})
