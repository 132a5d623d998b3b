// `berth device available`
import { printList } from '../output/list.ts'
import type { Run } from '../spec.ts'
import type { AvailableDevice } from '../views.ts'

export const run: Run = async (session) => await printList(session, await (await session.api()).call<AvailableDevice[]>('GET', '/devices/available'), {
  key: ({ pci_address: address }) => address,
  columns: [
    ['PCI', ({ pci_address: address }) => address], ['IOMMU GROUP', ({ iommu_group: group }) => String(group)], ['VENDOR', ({ vendor_name: name, vendor_id: id }) => name ?? id],
    ['DEVICE', ({ device_name: name, device_id: id }) => name ?? id], ['DRIVER', ({ current_driver: driver }) => driver ?? '-']
  ]
})
