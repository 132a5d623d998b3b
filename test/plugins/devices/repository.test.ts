// Who has a device, decided by the database, the same on SQLite and MariaDB.
import t from 'tap'
import { BerthError } from '../../../core/errors/define.ts'
import { migratePlugin, revertPlugin } from '../../../core/db/migrate.ts'
import { manifest } from '../../../plugins/devices/manifest.ts'
import { NO_GROUP, type DeviceRecord } from '../../../plugins/devices/record.ts'
import { DeviceRepository } from '../../../plugins/devices/repository.ts'
import { eachDatabase } from '../../helpers/mariadb.ts'

const record = (id: string, group: number, fields: Partial<DeviceRecord> = {}): DeviceRecord => ({
  id, name: `name-${id}`, type: 'pci', pciAddress: `0000:0${group}:00.${id.length}`, vendorId: '8086', deviceId: '10d3', iommuGroup: group, tags: { 'a b': 'ü' }, createdAt: 1_780_000_000_123, instanceId: null, ...fields
})

async function codeOf (work: Promise<unknown>): Promise<string> {
  try {
    await work
    return 'done'
  } catch (error) {
    if (error instanceof BerthError) return error.code
    throw error
  }
}

eachDatabase(t, 'what is stored comes back as it was, for one host', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const [repository, other] = [new DeviceRepository(database, 'host'), new DeviceRepository(database, 'other')]
  t.equal(await repository.insert(record('a', 1)), undefined)
  t.equal(await repository.insert(record('b', 2, { name: 'NAME-A' })), 'name')
  t.equal(await other.insert(record('b', 2, { name: 'NAME-A' })), 'name', 'on all hosts')
  t.equal(await repository.insert(record('c', 1)), 'address')
  t.equal(await other.insert(record('c', 1)), undefined)
  t.same(await repository.all(), [record('a', 1)])
  await repository.setGroup('a', 9)
  t.match(await repository.all(), [{ iommuGroup: 9 }])
  await other.remove('c')
  t.equal(await codeOf(repository.remove('c')), 'not_found')
  await repository.addBinding({ pciAddress: '0000:01:00.0', instanceId: 'one', driver: 'e1000e' })
  await repository.addBinding({ pciAddress: '0000:01:00.0', instanceId: 'two', driver: null })
  t.same(await repository.bindings(), [{ pciAddress: '0000:01:00.0', instanceId: 'two', driver: 'e1000e' }], 'the first driver is the one to go back to')
  t.same(await other.bindings(), [])
  await repository.removeBinding('0000:01:00.0')
  const mdev = { uuid: '11111111-2222-3333-4444-555555555555', instanceId: 'one', profile: 'A40-2Q', parent: '0000:81:00.4' }
  await repository.putMdev(mdev)
  await repository.putMdev({ ...mdev, parent: '0000:82:00.4' })
  t.same(await repository.mdevs(), [{ ...mdev, parent: '0000:82:00.4' }])
  await repository.removeMdev(mdev.uuid)
  t.same([...await repository.mdevs(), ...await repository.bindings()], [])
  await revertPlugin(database, manifest.id, manifest.migrations)
  t.notOk(await database.schema.hasTable('devices_devices'))
})

eachDatabase(t, 'a device and its group have one instance, all devices of a request or none', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new DeviceRepository(database, 'host')
  for (const [id, group] of [['a', 1], ['bb', 1], ['c', 2]] as const) await repository.insert(record(id, group))
  await repository.attach('one', ['a'])
  t.equal(await codeOf(repository.attach('two', ['a'])), 'device_in_use')
  t.equal(await codeOf(repository.attach('two', ['c', 'bb'])), 'device_in_use', 'of the same group')
  t.equal(await codeOf(repository.attach('two', ['c', 'nobody'])), 'not_found')
  t.same((await repository.all()).map(({ instanceId }) => instanceId), ['one', null, null])
  t.equal(await codeOf(repository.attach('one', ['a', 'bb'])), 'done')
  t.equal(await codeOf(repository.remove('a')), 'in_use')
  await repository.detach('one')
  t.equal(await codeOf(repository.attach('two', ['bb'])), 'done')
  t.equal(await codeOf(repository.remove('a')), 'done')
})

eachDatabase(t, 'devices that are in no group are not parts of one device, and what an instance has of one is nobody else\'s to take', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new DeviceRepository(database, 'host')
  for (const [id, group] of [['a', 1], ['bb', 1], ['c', 2]] as const) await repository.insert(record(id, group))
  for (const id of ['a', 'c']) await repository.setGroup(id, NO_GROUP)
  await repository.attach('one', ['a'])
  t.equal(await codeOf(repository.attach('two', ['a'])), 'device_in_use')
  t.equal(await codeOf(repository.attach('two', ['c'])), 'done')
  const addresses = ['a', 'bb'].map((id) => record(id, 1).pciAddress)
  t.equal(await codeOf(repository.requireNoOther('one', addresses)), 'done')
  t.equal(await codeOf(repository.requireNoOther('two', addresses)), 'device_in_use')
  t.equal(await codeOf(new DeviceRepository(database, 'other').requireNoOther('two', addresses)), 'done', 'on this host')
})

eachDatabase(t, 'of many that want devices of one group at once, exactly one gets them', async (t, database) => {
  await migratePlugin(database, manifest.id, manifest.migrations)
  const repository = new DeviceRepository(database, 'host')
  for (const [id, group] of [['a', 1], ['bb', 1], ['c', 2]] as const) await repository.insert(record(id, group))
  const names = Array.from({ length: 8 }, (_, index) => `instance-${index}`)
  const wants = (index: number): string[] => [['a'], ['bb', 'c'], ['c', 'a'], ['bb']][index % 4] ?? []
  const outcomes = await Promise.all(names.map(async (name, index) => await codeOf(repository.attach(name, wants(index)))))
  t.equal(outcomes.filter((code) => code === 'done').length, 1)
  t.equal(outcomes.filter((code) => code === 'device_in_use').length, 7)
})
