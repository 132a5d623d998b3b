// The list of devices, for test/core/db/page.long.test.ts.
import { manifest } from '../../../plugins/devices/manifest.ts'
import { DeviceRepository } from '../../../plugins/devices/repository.ts'
import { commonOf, padded, type ListsOfPlugin } from '../../helpers/lists.ts'

export const lists: ListsOfPlugin = {
  manifest,
  short: {
    tables: ['devices_devices'],
    async store (database, hostId, count) {
      await database.batchInsert('devices_devices', Array.from({ length: count }, (_, index) => ({
        ...commonOf(hostId, count, index), name: `device-${hostId}-${padded(index)}`, name_key: `device-${hostId}-${padded(index)}`, type: 'pci', pci_address: `0000:${padded(index)}:00.0`, vendor_id: '8086', device_id: '1533', iommu_group: index,
        tags: JSON.stringify({ even: String(index % 2 === 0) }), turns: 0
      })), 30)
    },
    of (database, hostId) {
      const devices = new DeviceRepository(database, hostId)
      return {
        lists: [
          ['devices by time', 1, async (page) => await devices.page({}, { ...page, sort: 'created_at' }), ({ createdAt }) => createdAt],
          ['devices by name', 1, async (page) => await devices.page({}, { ...page, sort: 'name' }), ({ name }) => name],
          ['devices of a tag', 1 / 2, async (page) => await devices.page({ tags: { even: 'true' } }, { ...page, sort: '-created_at' }), ({ createdAt }) => -createdAt]
        ],
        single: [
          ['devices of a name', async () => (await devices.page({ name: `device-${hostId}-077` }, { limit: 10, sort: 'created_at' })).items],
          ['devices of a name in small letters', async () => {
            const { items } = await devices.page({ name: `DEVICE-${hostId}-077` }, { limit: 10, sort: 'name' })
            return items.length === 0 ? ['case matters'] : []
          }]
        ]
      }
    }
  }
}
