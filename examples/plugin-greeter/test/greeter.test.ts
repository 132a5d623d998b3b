// Against a real server that has this plugin alone.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Type, type Plugin } from 'berth/plugin'
import { startKernel, type TestKernel } from 'berth/plugin/testing'
import { plugin } from '../src/index.ts'

let kernel: TestKernel
before(async () => { kernel = await startKernel([plugin], { config: { greeter: { greeting: 'Good day', most: 2 } } }) })
after(async () => { await kernel.stop() })

test('somebody is greeted once, and found again', async () => {
  const greeted = await kernel.request('/greetings', { method: 'POST', body: { name: 'Ada' }, scopes: ['greeting:write'] })
  assert.equal(greeted.status, 201)
  assert.match(JSON.stringify(greeted.body), /"text":"Good day, Ada!"/)
  assert.deepEqual((await kernel.request('/greetings/Ada', { scopes: ['greeting:read'] })).body, greeted.body)
  const again = await kernel.request('/greetings', { method: 'POST', body: { name: 'Ada' } })
  assert.deepEqual([again.status, again.body], [409, { code: 'name_conflict', message: 'Ada has been greeted already' }])
})

test('a key needs the scope, and names have their rule', async () => {
  assert.equal((await kernel.request('/greetings/Ada', { anonymous: true })).status, 401)
  assert.equal((await kernel.request('/greetings/Ada', { scopes: ['greeting:write'] })).status, 403)
  assert.equal((await kernel.request('/greetings/Grace')).status, 404)
  assert.equal((await kernel.request('/greetings', { method: 'POST', body: { name: '4' } })).status, 400)
})

test('no more are greeted than the configuration allows', async () => {
  assert.equal((await kernel.request('/greetings', { method: 'POST', body: { name: 'Grace' } })).status, 201)
  const refused = await kernel.request('/greetings', { method: 'POST', body: { name: 'Edsger' } })
  assert.deepEqual([refused.status, refused.body], [409, { code: 'too_many_greeted', message: '2 people have been greeted already (plugins.greeter.config.most)' }])
})

test('a setting that is wrong keeps the server from starting, and is named', async () => {
  await assert.rejects(startKernel([plugin], { config: { greeter: { greeting: '' } } }), /plugins\.greeter\.config\.greeting/)
})

test('another plugin greets through the service', async () => {
  let text = ''
  const host: Plugin = {
    manifest: { id: 'host', provides: [], requires: ['greeter'], config: Type.Object({}, { additionalProperties: false }) },
    create: ({ greeter }) => ({ async start () { text = (await greeter.greet('Barbara')).text } })
  }
  await (await startKernel([plugin, host])).stop()
  assert.equal(text, 'Hello, Barbara!')
})
