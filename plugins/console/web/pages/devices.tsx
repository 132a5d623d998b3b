// Devices of the host that instances can have.
import { path } from '../api/call.ts'
import { Button } from '../parts/button.tsx'
import { useLoaded } from '../state/list.ts'
import { href } from '../state/route.ts'
import { ListPage } from './list-page.tsx'
import { askToRemove } from './remove.ts'

interface Device { readonly id: string, readonly name: string, readonly type: string, readonly pci_address: string, readonly vendor_id: string, readonly device_id: string, readonly iommu_group: number, readonly attached_to: string | null }
interface Available { readonly pci_address: string, readonly vendor_name?: string, readonly device_name?: string, readonly current_driver: string | null }

export function Devices () {
  const loaded = useLoaded<readonly Device[]>('/devices', ['device'])
  const available = useLoaded<readonly Available[]>('/devices/available', ['device'])
  return (
    <ListPage
      title='Devices' loaded={loaded} keyOf={({ id }) => id} textOf={({ id, name, pci_address: address }) => `${id} ${name} ${address}`}
      create={{ verb: 'Register device', scope: 'device:write', documented: '/devices', first: ['pci_address', 'name'], suggestions: async () => ({ pci_address: (available.data.value ?? []).map((each) => each.pci_address) }) }}
      empty={{ title: 'No device is registered.', text: <p>{(available.data.value ?? []).length === 0 ? 'This host has none that could be passed to an instance: that takes an IOMMU.' : `The host has ${available.data.value?.length ?? 0} that can be passed to an instance: ${available.data.value?.map((each) => `${each.pci_address} ${each.device_name ?? ''}`).join(', ') ?? ''}.`}</p> }}
      columns={[
        { title: 'Name', kind: 'wide', cell: ({ name }) => name },
        { title: 'Type', cell: ({ type }) => type },
        { title: 'Address', cell: (row) => <code>{row.pci_address}</code> },
        { title: 'Device', cell: (row) => <code>{row.vendor_id}:{row.device_id}</code> },
        { title: 'Attached to', cell: ({ attached_to: id }) => id === null ? <span class='quiet'>nothing</span> : <a href={href(['instances', id])}>{id.slice(0, 12)}</a> },
        { title: 'Actions', kind: 'actions', cell: ({ id, name, attached_to: user }) => <Button label={`Unregister ${name}`} scope='device:write' unless={user !== null && 'An instance has it.'} onPress={() => { askToRemove({ url: path`/devices/${id}`, name, goes: ['Its registration; the device stays in the host'], verb: 'Unregister', done: loaded.reload }) }}>Unregister</Button> }
      ]}
    />
  )
}
