// A host's devices in a folder: a tree like sysfs, and a kernel that answers what is written to it as Linux does, as far as drivers and mediated devices go.
import { chown, mkdir, mkdtemp, readFile, readlink, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { createSysfs, WRITE_TIMEOUT_MS, type Sysfs } from '../../../plugins/devices/host/sysfs.ts'

export interface FakeDevice {
  readonly address: string
  /** `10de:2235` */
  readonly ids: string
  /** six hex digits */
  readonly class?: string
  readonly group?: number | undefined
  /** the driver that the kernel knows for it */
  readonly driver?: string
  readonly physfn?: string
  readonly numvfs?: number
  /** types of mediated devices: how many there can be, and what their files say */
  readonly mdevs?: Readonly<Record<string, { readonly name?: string, readonly count: number, readonly description?: string }>>
}

export interface FakeHost {
  readonly sysfs: Sysfs
  readonly folder: string
  readonly nodes: string
  readonly pciIds: string
  /** told of each write before the kernel takes it; what it throws, the write fails with */
  onWrite: ((path: string, text: string) => void | Promise<void>) | undefined
  /** how long a server waits for the kernel to come back from a write */
  writeTimeoutMs: number
  /** drivers that take no device */
  readonly broken: Set<string>
  driver (address: string): Promise<string | undefined>
  mdevs (): Promise<readonly string[]>
  /** takes a device out of the host */
  pull (address: string): Promise<void>
  /** what a restart of the host does: drivers as in the beginning, no mediated devices, and these numbers of groups, by address */
  reboot (groups?: Readonly<Record<string, number>>): Promise<void>
}

const PCI = 'bus/pci/devices'
const DRIVERS = 'bus/pci/drivers'

export async function makeHost (t: Test, devices: readonly FakeDevice[]): Promise<FakeHost> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-sysfs-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const host = new Host(folder, devices)
  await host.build()
  return host
}

class Host implements FakeHost {
  readonly folder: string
  readonly nodes: string
  readonly pciIds: string
  readonly sysfs: Sysfs
  readonly broken = new Set<string>()
  onWrite: FakeHost['onWrite']
  writeTimeoutMs = WRITE_TIMEOUT_MS
  #devices: readonly FakeDevice[]

  constructor (folder: string, devices: readonly FakeDevice[]) {
    this.folder = folder
    this.nodes = join(folder, 'dev')
    this.pciIds = join(folder, 'pci.ids')
    this.#devices = devices
    const plain = createSysfs(join(folder, 'sys'), createHostCommands())
    this.sysfs = {
      ...plain,
      write: async (path, text) => {
        await this.onWrite?.(path, text)
        if (await plain.read(path) === undefined) throw Object.assign(new Error(`ENOENT: no such file ${path}`), { code: 'ENOENT' })
        await this.#put(path, text)
        await this.#react(path, text)
      }
    }
  }

  async build (): Promise<void> {
    await this.#put('bus/pci/drivers_probe', '')
    await mkdir(this.nodes)
    await writeFile(join(this.nodes, 'vfio'), '', { mode: 0o600 })
    await mkdir(join(this.folder, 'sys', DRIVERS, 'vfio-pci'), { recursive: true })
    for (const device of this.#devices) await this.#add(device)
    await writeFile(this.pciIds, '# a list\n10de  NVIDIA Corporation\n\t2235  GA102GL [A40]\n\t\t10de 145a  A40\n8086  Intel Corporation\n\t10d3  82574L Gigabit Network Connection\nC 03  Display controller\n\t00  VGA\n')
  }

  async driver (address: string): Promise<string | undefined> {
    return await this.sysfs.target(`${PCI}/${address}/driver`)
  }

  async mdevs (): Promise<readonly string[]> {
    return await this.sysfs.list('bus/mdev/devices')
  }

  async pull (address: string): Promise<void> {
    await rm(this.#path(`${PCI}/${address}`), { recursive: true })
  }

  async reboot (groups: Readonly<Record<string, number>> = {}): Promise<void> {
    this.#devices = this.#devices.map((device) => ({ ...device, group: groups[device.address] ?? device.group }))
    await rm(this.folder, { recursive: true })
    await mkdir(this.folder)
    await this.build()
  }

  async #add ({ address, ids, class: deviceClass = '020000', group, driver, physfn, numvfs, mdevs = {} }: FakeDevice): Promise<void> {
    const [vendor = '', device = ''] = ids.split(':')
    const own = `${PCI}/${address}`
    for (const [file, text] of Object.entries({ vendor: `0x${vendor}\n`, device: `0x${device}\n`, class: `0x${deviceClass}\n`, driver_override: '(null)\n' })) await this.#put(`${own}/${file}`, text)
    if (numvfs !== undefined) await this.#put(`${own}/sriov_numvfs`, `${numvfs}\n`)
    if (physfn !== undefined) await symlink(`../${physfn}`, this.#path(`${own}/physfn`))
    if (group !== undefined) {
      await mkdir(this.#path(`kernel/iommu_groups/${group}/devices`), { recursive: true })
      await symlink(`../../../../${own}`, this.#path(`kernel/iommu_groups/${group}/devices/${address}`))
      await symlink(`../../../../kernel/iommu_groups/${group}`, this.#path(`${own}/iommu_group`))
    }
    if (driver !== undefined) {
      await this.#put(`${DRIVERS}/${driver}/bind`, '')
      await this.#bind(address, driver)
    }
    for (const [typeId, { name, count, description }] of Object.entries(mdevs)) {
      const type = `${own}/mdev_supported_types/${typeId}`
      if (name !== undefined) await this.#put(`${type}/name`, `${name}\n`)
      if (description !== undefined) await this.#put(`${type}/description`, `${description}\n`)
      await this.#put(`${type}/available_instances`, `${count}\n`)
      await this.#put(`${type}/create`, '')
    }
  }

  async #react (path: string, text: string): Promise<void> {
    const [, unbound] = /^bus\/pci\/devices\/([^/]+)\/driver\/unbind$/.exec(path) ?? []
    const [, driver] = /^bus\/pci\/drivers\/([^/]+)\/bind$/.exec(path) ?? []
    const [, parent, typeId] = /^bus\/pci\/devices\/([^/]+)\/mdev_supported_types\/([^/]+)\/create$/.exec(path) ?? []
    const [, removed] = /^bus\/mdev\/devices\/([^/]+)\/remove$/.exec(path) ?? []
    if (unbound !== undefined) await this.#unbind(unbound)
    if (path === 'bus/pci/drivers_probe') await this.#probe(text)
    if (driver !== undefined) await this.#bind(text, driver)
    if (parent !== undefined && typeId !== undefined) await this.#makeMdev(parent, typeId, text)
    if (removed !== undefined) await this.#removeMdev(removed)
  }

  async #probe (address: string): Promise<void> {
    const override = (await this.sysfs.read(`${PCI}/${address}/driver_override`) ?? '').trim()
    const driver = override === '' || override === '(null)' ? this.#devices.find((device) => device.address === address)?.driver : override
    if (driver !== undefined) await this.#bind(address, driver)
  }

  async #bind (address: string, driver: string): Promise<void> {
    if (this.broken.has(driver) || await this.driver(address) !== undefined) return
    await this.#put(`${DRIVERS}/${driver}/unbind`, '')
    await symlink(`../../drivers/${driver}`, this.#path(`${PCI}/${address}/driver`))
    const group = await this.sysfs.target(`${PCI}/${address}/iommu_group`)
    if (driver === 'vfio-pci' && group !== undefined) await this.#makeNode(group)
  }

  async #unbind (address: string): Promise<void> {
    const group = await this.sysfs.target(`${PCI}/${address}/iommu_group`)
    await rm(this.#path(`${PCI}/${address}/driver`))
    const members = group === undefined ? [] : await this.sysfs.list(`kernel/iommu_groups/${group}/devices`)
    const drivers = await Promise.all(members.map(async (member) => await this.driver(member)))
    if (group !== undefined && !drivers.includes('vfio-pci')) await rm(join(this.nodes, group), { force: true })
  }

  async #makeMdev (parent: string, typeId: string, uuid: string): Promise<void> {
    const file = `${PCI}/${parent}/mdev_supported_types/${typeId}/available_instances`
    const available = Number(await this.sysfs.read(file))
    if (available < 1) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
    await this.#put(file, `${available - 1}\n`)
    const group = `9${(await this.mdevs()).length}`
    await this.#put(`bus/mdev/devices/${uuid}/remove`, '')
    await this.#put(`bus/mdev/devices/${uuid}/type`, file)
    await mkdir(this.#path(`kernel/iommu_groups/${group}/devices`), { recursive: true })
    await symlink(`../../../../kernel/iommu_groups/${group}`, this.#path(`bus/mdev/devices/${uuid}/iommu_group`))
    await this.#makeNode(group)
  }

  async #removeMdev (uuid: string): Promise<void> {
    const file = await readFile(this.#path(`bus/mdev/devices/${uuid}/type`), 'utf8')
    await this.#put(file, `${Number(await this.sysfs.read(file)) + 1}\n`)
    await rm(join(this.nodes, await readlink(this.#path(`bus/mdev/devices/${uuid}/iommu_group`)).then((link) => link.split('/').at(-1) ?? '')))
    await rm(this.#path(`bus/mdev/devices/${uuid}`), { recursive: true })
  }

  async #makeNode (group: string): Promise<void> {
    await writeFile(join(this.nodes, group), '', { mode: 0o600 })
    if (process.getuid?.() === 0) await chown(join(this.nodes, group), 0, 0)
  }

  async #put (path: string, text: string): Promise<void> {
    await mkdir(dirname(this.#path(path)), { recursive: true })
    await writeFile(this.#path(path), text)
  }

  #path (path: string): string {
    return join(this.folder, 'sys', path)
  }
}
