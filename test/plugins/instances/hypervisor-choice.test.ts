// Which hypervisors there are, why one is not, and what becomes of instances when a driver goes and comes.
import { join } from 'node:path'
import t from 'tap'
import { Type } from 'typebox'
import { definePlugin, SkipPlugin, type Plugin } from '../../../core/plugins/manifest.ts'
import { eventually } from '../../helpers/eventually.ts'
import { startApp, temporaryData, type TestApp } from './app.ts'
import { ScriptedHost } from './scripted.ts'

const WHY = 'it needs a processor that this host has not'

/** A second driver on the same scripted host. */
function plugin (host: ScriptedHost, reason?: string): Plugin {
  const probe = async () => reason === undefined ? await host.driver.probe() : { supported: false, reason }
  return definePlugin({
    manifest: { id: 'other', provides: [], requires: [], fills: { slot: 'hypervisors', name: 'xen' }, config: Type.Object({}, { additionalProperties: false }) },
    create: () => ({
      filling: {
        ...host.driver,
        name: 'xen',
        probe,
        launch: async (spec, signal) => {
          const vm = await host.driver.launch(spec, signal)
          return Object.defineProperty(vm, 'handle', { value: { ...vm.handle, driver: 'xen' } })
        }
      }
    })
  })
}

/** A plugin of a driver that this host cannot run. */
function skipped (name: string, reason: string): Plugin {
  return definePlugin({
    manifest: { id: `hypervisor-${name}`, provides: [], requires: [], fills: { slot: 'hypervisors', name }, config: Type.Object({}, { additionalProperties: false }) },
    create: () => { throw new SkipPlugin(reason) }
  })
}

const runtimesOf = async ({ call }: TestApp): Promise<ReadonlyArray<Record<string, unknown>>> => Object((await call('GET', '/capabilities')).body).runtimes
const request = (name: string, fields: Record<string, unknown> = {}): Record<string, unknown> => ({ name, image: 'test', cmd: ['/bin/x'], overlay_size: '32MB', ...fields })

t.test('each hypervisor that Berth knows is listed, and one that is not here says why', async (t) => {
  const host = new ScriptedHost()
  const runtimes = await runtimesOf(await startApp(t, { host, plugins: [plugin(host, WHY), skipped('firecracker', 'no KVM here'), skipped('of-others', 'no such machine'), skipped('vz', '')], sections: { 'hypervisor-vz': { enabled: false } } }))
  t.same(runtimes.map(({ name }) => name), ['firecracker', 'of-others', 'qemu', 'vz', 'xen'])
  const of = (wanted: string): unknown => runtimes.find(({ name }) => name === wanted)
  t.match(of('qemu'), { available: true })
  t.match(of('xen'), { available: false, features: [], reason: WHY })
  t.match(of('firecracker'), { available: false, features: [], reason: 'the plugin hypervisor-firecracker is skipped: no KVM here' })
  t.match(of('of-others'), { available: false, features: [], reason: 'the plugin hypervisor-of-others is skipped: no such machine' })
  t.match(of('vz'), { available: false, features: [], reason: 'the plugin hypervisor-vz is disabled: turned off in the configuration' })
})

t.test('a create that names one that is not available is refused with its sentence, before anything is made', async (t) => {
  const host = new ScriptedHost()
  const { call, make, waitFor } = await startApp(t, { host, plugins: [plugin(host, WHY)] })
  const refused = { status: 501, body: { code: 'not_supported', message: `hypervisor: xen is not available on this host: ${WHY}` } }
  t.match(await call('POST', '/instances', request('a', { hypervisor: 'xen' })), refused)
  t.same((await call('GET', '/instances')).body, [])
  t.same(host.vms, [])
  await make('b')
  await waitFor('b', 'Running')
})

t.test('another default is for new instances only', async (t) => {
  const host = new ScriptedHost()
  const dataDir = join(await temporaryData(t), 'data')
  const first = await startApp(t, { host, dataDir, plugins: [plugin(host)] })
  await first.make('before')
  await first.waitFor('before', 'Running')
  await first.app.stop()
  const second = await startApp(t, { host, dataDir, plugins: [plugin(host)], config: { defaults: { hypervisor: 'xen' } } })
  t.match((await second.call('GET', '/instances/before')).body, { hypervisor: 'qemu', state: 'Running' })
  t.match(await second.call('POST', '/instances', request('after')), { status: 201, body: { hypervisor: 'xen' } })
})

t.test('instances of a driver that is gone are Unknown and say so, and come back with it', async (t) => {
  const host = new ScriptedHost()
  const dataDir = join(await temporaryData(t), 'data')
  const first = await startApp(t, { host, dataDir, plugins: [plugin(host)] })
  t.match(await first.call('POST', '/instances', request('a', { hypervisor: 'xen' })), { status: 201 })
  await first.waitFor('a', 'Running')
  await first.app.stop()
  const second = await startApp(t, { host, dataDir })
  await eventually('it is looked after', async () => (await second.call('GET', '/instances/a')).body['state'] === 'Unknown')
  t.match((await second.call('GET', '/instances/a')).body, { hypervisor: 'xen', state_error: /plugin hypervisor-xen, which runs its VM, is not enabled/ })
  await second.app.stop()
  const third = await startApp(t, { host, dataDir, plugins: [plugin(host)] })
  await third.waitFor('a', 'Running')
})
