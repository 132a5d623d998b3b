// Devices by their routes: what the host has, and what is registered, found, listed, refused and removed.
import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { createSysfs } from '../../../plugins/devices/host/sysfs.ts'
import { testFolder } from '../../helpers/folder.ts'
import { startWithDevices, TREE } from './app.ts'
import { makeHost } from './fixture.ts'

const VF = '0000:04:02.0'

t.test('what could be given to an instance is listed with its names, its group and its driver', async (t) => {
  const { call } = await startWithDevices(t, TREE)
  const { status, text } = await call('GET', '/devices/available')
  t.equal(status, 200)
  t.same(JSON.parse(text), [
    { pci_address: '0000:01:00.0', vendor_id: '10de', device_id: '2235', iommu_group: 1, vendor_name: 'NVIDIA Corporation', device_name: 'GA102GL [A40]', current_driver: 'nvidia' },
    { pci_address: '0000:01:00.1', vendor_id: '10de', device_id: '1aef', iommu_group: 1, vendor_name: 'NVIDIA Corporation', current_driver: 'snd_hda_intel' },
    { pci_address: '0000:02:00.0', vendor_id: '8086', device_id: '10d3', iommu_group: 2, vendor_name: 'Intel Corporation', device_name: '82574L Gigabit Network Connection', current_driver: 'e1000e' },
    { pci_address: VF, vendor_id: '8086', device_id: '154c', iommu_group: 5, vendor_name: 'Intel Corporation', current_driver: 'iavf' },
    { pci_address: '0000:04:02.1', vendor_id: '8086', device_id: '154c', iommu_group: 6, vendor_name: 'Intel Corporation', current_driver: null },
    { pci_address: '0000:06:00.0', vendor_id: 'abcd', device_id: '0001', iommu_group: 7, current_driver: null }
  ])
})

t.test('a host without PCI has no devices', async (t) => {
  const { call } = await startWithDevices(t, [])
  t.same(JSON.parse((await call('GET', '/devices/available')).text), [])
  t.match(await call('POST', '/devices', { pci_address: '0000:01:00.0' }), { status: 404, body: { code: 'device_not_found' } })
})

t.test('a device is registered by its address, however it is written, and found by id and name', async (t) => {
  const { call, devices } = await startWithDevices(t, TREE)
  const made = await call('POST', '/devices', { pci_address: ' 01:00.0', tags: { team: 'a' } })
  t.equal(made.status, 201)
  t.match(made.body, {
    name: 'pci-0000-01-00-0', type: 'gpu', pci_address: '0000:01:00.0', vendor_id: '10de', device_id: '2235', iommu_group: 1, bound_to_vfio: false, attached_to: null, tags: { team: 'a' }, created_at: /Z$/
  })
  for (const ref of [String(made.body['id']), String(made.body['id']).slice(0, 12), 'pci-0000-01-00-0']) t.same((await call('GET', `/devices/${ref}`)).body, made.body)
  t.match(await call('POST', '/devices', { pci_address: '0000:06:00.0', name: 'Card_1.x' }), { status: 201, body: { type: 'pci', name: 'Card_1.x' } })
  t.equal(await devices.driver('0000:01:00.0'), 'nvidia', 'nothing happens to it')
  t.equal((await call('DELETE', '/devices/Card_1.x')).status, 204)
  t.match(await call('DELETE', '/devices/Card_1.x'), { status: 404, body: { code: 'not_found' } })
  t.match(await call('GET', '/devices/Card_1.x'), { status: 404, body: { code: 'not_found' } })
})

t.test('names and addresses are unique', async (t) => {
  const { call, register } = await startWithDevices(t, TREE)
  await register('0000:01:00.0', 'Card')
  t.match(await call('POST', '/devices', { pci_address: '0000:02:00.0', name: 'card' }), { status: 409, body: { code: 'conflict', message: /^name/ }, headers: { 'x-should-retry': 'false' } })
  t.match(await call('POST', '/devices', { pci_address: '01:00.0', name: 'other' }), { status: 409, body: { code: 'conflict', message: /^pci_address.*Card/ } })
  await call('DELETE', '/devices/Card')
  t.equal((await call('POST', '/devices', { pci_address: '0000:02:00.0', name: 'card' })).status, 201)
})

t.test('the same request with an idempotency key registers one device', async (t) => {
  const { call } = await startWithDevices(t, TREE)
  const post = async () => await call('POST', '/devices', { pci_address: '02:00.0' }, { 'idempotency-key': 'k' })
  t.same((await post()).body, (await post()).body)
})

t.test('lists are by age, filtered by tags, and in pages', async (t) => {
  const { call } = await startWithDevices(t, TREE)
  const tags = [{ team: 'x', env: 'p' }, { team: 'x' }, {}]
  for (const [index, address] of ['0000:01:00.0', '0000:02:00.0', VF].entries()) await call('POST', '/devices', { pci_address: address, name: `d${index}`, tags: tags[index] })
  const names = async (query: string): Promise<string[]> => {
    const found: { name: string }[] = JSON.parse((await call('GET', `/devices${query}`)).text)
    return found.map(({ name }) => name)
  }
  t.same(await names(''), ['d0', 'd1', 'd2'])
  t.same(await names('?tags[team]=x'), ['d0', 'd1'])
  t.same(await names('?tags[team]=x&tags[env]=p'), ['d0'])
  t.same(await names('?limit=2'), ['d0', 'd1'])
  t.match((await call('GET', '/devices?limit=2')).headers['link'], /rel="next"/)
  t.equal((await call('GET', '/devices?after=nobody')).status, 400)
})

const card = { pci_address: '0000:02:00.0' }
const wrong: readonly [body: unknown, status: number, code: string, message: RegExp][] = [
  [undefined, 400, 'invalid_request', /body/],
  [[], 400, 'invalid_request', /body/],
  [{}, 400, 'invalid_request', /pci_address/],
  [{ pci_address: null }, 400, 'invalid_request', /pci_address/],
  [{ pci_address: 7 }, 400, 'invalid_request', /pci_address/],
  [{ pci_address: { a: 1 } }, 400, 'invalid_request', /pci_address/],
  [{ pci_address: 'x'.repeat(256) }, 400, 'invalid_request', /pci_address/],
  ...['', ' ', 'x', '0000:02:00', '0000:02:00.8', '0000:02:20.0', '000:02:00.0', '0000:02:00.0/..', '../0000:02:00.0', '0000-02-00-0', '0000:2:00.0', '0000:02:00.0\u0000', 'g000:02:00.0', '0000:02:00.0 0000:03:00.0']
    .map((text): [unknown, number, string, RegExp] => [{ pci_address: text }, 400, 'invalid_pci_address', /^pci_address/]),
  [{ pci_address: '0000:7f:00.0' }, 404, 'device_not_found', /0000:7f:00\.0/],
  [{ pci_address: '0001:02:00.0' }, 404, 'device_not_found', /0001:02:00\.0/],
  ...['', 'a', '-a', '.a', '_a', 'a b', 'a/b', 'ä1', 'a\n', 'x'.repeat(64)].map((name): [unknown, number, string, RegExp] => [{ ...card, name }, 400, 'invalid_name', /^name/]),
  [{ ...card, name: null }, 400, 'invalid_request', /name/],
  [{ ...card, name: 5 }, 400, 'invalid_request', /name/],
  [{ ...card, tags: 'x' }, 400, 'invalid_request', /tags/],
  [{ ...card, tags: { a: 1 } }, 400, 'invalid_request', /tags/],
  [{ ...card, extra: 1 }, 400, 'invalid_request', /extra/],
  [{ pci_address: '0000:00:01.0' }, 409, 'device_not_assignable', /bridge/],
  [{ pci_address: '0000:03:00.0' }, 409, 'device_not_assignable', /group 3 holds other devices as well \(0000:03:01\.0\)/],
  [{ pci_address: '0000:04:00.0' }, 409, 'device_not_assignable', /2 virtual functions/],
  [{ pci_address: '0000:05:00.0' }, 409, 'device_not_assignable', /no IOMMU group/]
]

t.test('each wrong request is refused with its place, and registers nothing', async (t) => {
  const { call } = await startWithDevices(t, TREE)
  for (const [body, status, code, message] of wrong) t.match(await call('POST', '/devices', body), { status, body: { code, message } }, JSON.stringify(body))
  for (const query of ['?limit=0', '?limit=x', '?limit=1001', '?extra=1', '?tags=x']) t.match(await call('GET', `/devices${query}`), { status: 400, body: { code: 'invalid_request' } }, query)
  t.equal((await call('GET', '/devices?limit=')).status, 400)
  for (const method of ['GET', 'DELETE'] as const) {
    t.match(await call(method, '/devices/nobody'), { status: 404, body: { code: 'not_found' } })
    t.match(await call(method, `/devices/${'x'.repeat(192)}`), { status: 400, body: { code: 'invalid_request' } })
  }
  t.same(JSON.parse((await call('GET', '/devices')).text), [])
})

t.test('odd trees: what is half there is left out, and never safe', async (t) => {
  const host = await makeHost(t, [
    { address: '0000:01:00.0', ids: '10de:2235', group: 1 },
    { address: '0000:01:00.1', ids: ':', group: 1 },
    { address: '0000:02:00.0', ids: 'zzzz:1', group: 2 },
    { address: '0000:03:00.0', ids: '8086:10d3', class: '', group: 3 },
    // Virtual functions of one slot are devices of their own, whoever shares a group with them.
    { address: '0000:04:02.0', ids: '8086:154c', group: 4, physfn: '0000:04:00.0' },
    { address: '0000:04:02.1', ids: '8086:154c', group: 4, physfn: '0000:04:00.0' }
  ])
  const { call } = await startWithDevices(t, host)
  t.same(JSON.parse((await call('GET', '/devices/available')).text).map((device: { pci_address: string }) => device.pci_address), ['0000:03:00.0'])
  t.match(await call('POST', '/devices', { pci_address: '01:00.0' }), { status: 409, body: { message: /01:00\.1, which the host says nothing about/ } })
  t.match(await call('POST', '/devices', { pci_address: '02:00.0' }), { status: 404 })
  t.match(await call('POST', '/devices', { pci_address: '04:02.0' }), { status: 409, body: { message: /holds other devices/ } })
  t.match(await call('POST', '/devices', { pci_address: '03:00.0' }), { status: 201, body: { type: 'pci' } })
  await host.pull('0000:03:00.0')
  t.match((await call('GET', '/devices/pci-0000-03-00-0')).body, { iommu_group: 3, bound_to_vfio: false }, 'what is gone stays registered')
})

t.test('what is written to a file of the kernel is one write to what is there, and its error has the system\'s code', async (t) => {
  const folder = testFolder(t, { sys: { file: 'longer than what is written' } })
  await symlink('/dev/full', join(folder, 'sys/full'))
  const sysfs = createSysfs(join(folder, 'sys'), createHostCommands())
  await sysfs.write('file', '0000:01:00.0\n')
  t.equal(await readFile(join(folder, 'sys/file'), 'utf8'), '0000:01:00.0\nhat is written')
  await t.rejects(sysfs.write('missing', '1'), { code: 'ENOENT', message: 'missing: No such file or directory' })
  t.same(await sysfs.list(''), ['file', 'full'], 'nothing is made')
  await t.rejects(sysfs.write('full', '1'), { code: 'ENOSPC' })
})
