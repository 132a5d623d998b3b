// `berth device ls`
import { printList } from '../output/list.ts'
import { shortId } from '../output/values.ts'
import type { Run } from '../spec.ts'
import type { Device } from '../views.ts'

export const run: Run = async (session, input) => await printList(session, await (await session.api()).list<Device>('/devices', { tags: input.pairs('tag') }), {
  key: ({ id }) => id,
  columns: [
    ['ID', ({ id }) => shortId(id)], ['NAME', ({ name }) => name ?? '-'], ['TYPE', ({ type }) => type], ['PCI', ({ pci_address: address }) => address],
    ['VENDOR:DEVICE', ({ vendor_id: vendor, device_id: device }) => `${vendor}:${device}`], ['ATTACHED TO', ({ attached_to: id }) => id == null ? '-' : shortId(id)]
  ]
})
