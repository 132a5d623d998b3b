// `berth device register`
import { printMade } from '../output/made.ts'
import type { Run } from '../spec.ts'
import type { Device } from '../views.ts'

export const run: Run = async (session, input) => {
  const api = await session.api()
  return await printMade(session, await api.call<Device>('POST', '/devices', { body: { pci_address: input.argument(0), name: input.text('name'), tags: input.pairs('tag') } }))
}
