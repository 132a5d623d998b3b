// The application with instances on a scripted host, and devices of a host in a folder.
import type { Test } from 'tap'
import { createDevicesPlugin } from '../../../plugins/devices/index.ts'
import { startApp, type StartOptions, type TestApp } from '../instances/app.ts'
import { makeHost, type FakeDevice, type FakeHost } from './fixture.ts'

export interface DevicesApp extends TestApp {
  readonly devices: FakeHost
  /** registers one and returns its id */
  register (address: string, name?: string): Promise<string>
  /** the answer of GET /devices/{ref} */
  device (ref: string): Promise<Record<string, unknown>>
}

export async function startWithDevices (t: Test, devices: readonly FakeDevice[] | FakeHost, options: StartOptions = {}): Promise<DevicesApp> {
  const host = 'sysfs' in devices ? devices : await makeHost(t, devices)
  const app = await startApp(t, { ...options, plugins: [createDevicesPlugin({ sysfs: () => host.sysfs, writeTimeoutMs: host.writeTimeoutMs, nodes: host.nodes, pciIds: [host.pciIds] }), ...options.plugins ?? []] })
  return {
    ...app,
    devices: host,
    async register (address, name) {
      const { status, body, text } = await app.call('POST', '/devices', { pci_address: address, ...name === undefined ? {} : { name } })
      if (status !== 201) throw new Error(`device ${address} answered ${status} ${text}`)
      return String(body['id'])
    },
    device: async (ref) => (await app.call('GET', `/devices/${ref}`)).body
  }
}

/** A graphics card with its sound, a network card that shares a group with another, a virtual function, bridges, and devices that the host says little about. */
export const TREE: readonly FakeDevice[] = [
  { address: '0000:00:00.0', ids: '8086:29c0', class: '060000', group: 0 },
  { address: '0000:00:01.0', ids: '8086:1901', class: '060400', group: 1, driver: 'pcieport' },
  { address: '0000:01:00.0', ids: '10de:2235', class: '030200', group: 1, driver: 'nvidia' },
  { address: '0000:01:00.1', ids: '10de:1aef', class: '040300', group: 1, driver: 'snd_hda_intel' },
  { address: '0000:02:00.0', ids: '8086:10d3', group: 2, driver: 'e1000e' },
  { address: '0000:03:00.0', ids: '10ec:8139', group: 3, driver: '8139too' },
  { address: '0000:03:01.0', ids: '10ec:8139', group: 3, driver: '8139too' },
  { address: '0000:04:00.0', ids: '8086:1572', group: 4, driver: 'i40e', numvfs: 2 },
  { address: '0000:04:02.0', ids: '8086:154c', group: 5, driver: 'iavf', physfn: '0000:04:00.0' },
  { address: '0000:04:02.1', ids: '8086:154c', group: 6, physfn: '0000:04:00.0' },
  { address: '0000:05:00.0', ids: '1af4:1041', driver: 'virtio-pci' },
  { address: '0000:06:00.0', ids: 'abcd:0001', group: 7 }
]
