// Who keeps an instance awake.
import { once } from 'node:events'
import t, { type Test } from 'tap'
import { Type } from 'typebox'
import { WebSocket } from 'ws'
import { definePlugin } from '../../../../core/plugins/manifest.ts'
import { createLeases, type Leases } from '../../../../plugins/instances/life/leases.ts'
import { authorization } from '../../../core/bare-app.ts'
import { startApp, type TestApp } from '../app.ts'
import { until } from '../crash.ts'

t.test('an instance is free once each lease is released, and each is released but once', async (t) => {
  const changes: string[] = []
  const leases = createLeases((id) => { changes.push(id) })
  t.same(leases.reasons('a'), [])
  t.equal(leases.freeSince('a'), undefined)
  const [first, second] = [leases.take('a', 'exec'), leases.take('a', 'port 80')]
  t.same(leases.reasons('a'), ['exec', 'port 80'])
  first.release()
  first.release()
  t.same(leases.reasons('a'), ['port 80'])
  t.equal(leases.freeSince('a'), undefined)
  second.release()
  t.same(leases.reasons('a'), [])
  t.ok(Number(leases.freeSince('a')) > 0)
  t.same(leases.reasons('b'), [])
  t.same(changes, ['a', 'a', 'a', 'a'])
})

/** Another plugin's view of it; all of it, as the test wants to see what is held. */
async function start (t: Test): Promise<TestApp & { leases: Leases }> {
  let found: Leases | undefined
  const user = definePlugin({
    manifest: { id: 'leases-user', provides: [], requires: ['leases'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ leases }) => ({ async start () { found = Object(leases) } })
  })
  const app = await startApp(t, { listen: true, plugins: [user] })
  if (found === undefined) throw new Error('nobody provides leases')
  return { ...app, leases: found }
}

t.test('a command, a copy and a followed log keep an instance awake until they end', async (t) => {
  const app = await start(t)
  const id = await app.make('web')
  await app.waitFor('web', 'Running')
  const address = app.app.address()
  for (const way of ['exec', 'cp']) {
    const socket = new WebSocket(`${address.replace('http', 'ws')}/instances/web/${way}`, { headers: authorization })
    await once(socket, 'open')
    await until(async () => app.leases.reasons(id).join() === way)
    socket.close()
    await until(async () => app.leases.reasons(id).length === 0)
  }
  const gone = new AbortController()
  const log = await fetch(`${address}/instances/web/logs?follow=true`, { headers: authorization, signal: gone.signal })
  t.equal(log.status, 200)
  t.same(app.leases.reasons(id), ['followed log'])
  gone.abort()
  await until(async () => app.leases.reasons(id).length === 0)
})
