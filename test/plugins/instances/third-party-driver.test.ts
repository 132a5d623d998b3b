// A hypervisor's driver needs no word of core or of instances about it.
import t from 'tap'
import { Type } from 'typebox'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { startApp } from './app.ts'
import { ScriptedHost } from './scripted.ts'

t.test('the driver of a third party\'s plugin is chosen by the name under which it fills the slot', async (t) => {
  const host = new ScriptedHost()
  const xen = definePlugin({
    manifest: { id: 'other', provides: [], requires: [], fills: { slot: 'hypervisors', name: 'xen' }, config: Type.Object({}, { additionalProperties: false }) },
    create: () => ({ filling: { ...host.driver, name: 'xen' } })
  })
  const { call, waitFor } = await startApp(t, { host, plugins: [xen] })
  t.match(await call('POST', '/instances', { name: 'a', image: 'test', cmd: ['/bin/x'], overlay_size: '32MB', hypervisor: 'xen' }), { status: 201, body: { hypervisor: 'xen' } })
  await waitFor('a', 'Running')
  t.match((await call('GET', '/capabilities')).text, /"xen"/)
})
