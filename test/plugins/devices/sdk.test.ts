// All calls about devices by the official SDK.
import Hypeman from '@onkernel/hypeman'
import t from 'tap'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { startWithDevices, TREE } from './app.ts'

const refusal = async (work: Promise<unknown>): Promise<unknown> => await work.then(() => undefined, (error: unknown) => error)

t.test('the SDK lists, registers, shows and unregisters devices', async (t) => {
  const { app } = await startWithDevices(t, TREE, { listen: true })
  const sdk = new Hypeman({ baseURL: app.address(), apiKey: ADMIN_KEY, maxRetries: 0 })
  t.match((await sdk.devices.listAvailable())[0], { pci_address: '0000:01:00.0', vendor_id: '10de', device_id: '2235', iommu_group: 1, vendor_name: 'NVIDIA Corporation', device_name: 'GA102GL [A40]', current_driver: 'nvidia' })
  const made = await sdk.devices.create({ pci_address: '0000:01:00.0', name: 'gpu0', tags: { team: 'a' } })
  t.match(made, { name: 'gpu0', type: 'gpu', bound_to_vfio: false, attached_to: null, tags: { team: 'a' } })
  t.same(await sdk.devices.retrieve(made.id), made)
  t.same(await sdk.devices.retrieve('gpu0'), made)
  t.same(await sdk.devices.list(), [made])
  t.same(await sdk.devices.list({ tags: { team: 'b' } }), [])
  const { id } = await sdk.instances.create({ name: 'web', image: 'test', devices: ['gpu0'] })
  t.match(await sdk.devices.retrieve('gpu0'), { attached_to: id, bound_to_vfio: true })
  t.match(await refusal(sdk.devices.delete('gpu0')), { status: 409, error: { code: 'in_use' } })
  await sdk.instances.delete(id)
  await sdk.devices.delete('gpu0')
  t.match(await refusal(sdk.devices.retrieve('gpu0')), { status: 404 })
  t.match(await refusal(sdk.devices.create({ pci_address: 'x' })), { status: 400, error: { code: 'invalid_pci_address' } })
})
