// The plugin "devices": PCI devices of the host that instances can have for themselves.
import type { HostCommands } from '../../core/contracts/services.ts'
import { absentJournal } from '../../core/db/absent-journal.ts'
import { definePlugin, type Plugin } from '../../core/plugins/manifest.ts'
import { Assignments } from './assignments.ts'
import { Devices } from './devices.ts'
import { patient } from './host/deadline.ts'
import { createPciNames, PCI_IDS_FILES } from './host/names.ts'
import { createSysfs, WRITE_TIMEOUT_MS, type Sysfs } from './host/sysfs.ts'
import { createDevicesPart } from './instance-part.ts'
import { manifest, type Deps } from './manifest.ts'
import { createDeviceMetrics } from './metrics.ts'
import { DeviceRepository } from './repository.ts'
import { deviceRoutes } from './routes.ts'

/** The paths of the host's devices. */
export interface DevicesHost {
  readonly sysfs: (commands: HostCommands) => Sysfs
  /** how long to wait for the kernel to come back from a write */
  readonly writeTimeoutMs: number
  /** folder of the device files of groups */
  readonly nodes: string
  /** files with names of vendors and devices; the first that exists is used */
  readonly pciIds: readonly string[]
}

interface Composed { readonly devices: Devices, readonly assignments: Assignments }

function compose (deps: Deps, { sysfs: open, writeTimeoutMs, nodes, pciIds }: DevicesHost): Composed {
  const sysfs = patient(open(deps.commands), writeTimeoutMs)
  const repository = new DeviceRepository(deps.database, deps.server.hostId, deps.journal ?? absentJournal(deps.server.hostId))
  const devices = new Devices({ sysfs, repository, names: createPciNames(pciIds) })
  createDeviceMetrics(deps.metrics, async () => await repository.all())
  return { devices, assignments: new Assignments({ sysfs, nodes, repository, commands: deps.commands, log: deps.log.child({ plugin: manifest.id }) }) }
}

/** The plugin for a host whose devices have other paths than usual. */
export function createDevicesPlugin (host: DevicesHost): Plugin {
  return definePlugin({
    manifest,
    create (deps) {
      const { devices, assignments } = compose(deps, host)
      return {
        services: { gpus: assignments },
        filling: createDevicesPart(assignments, deps.log.child({ plugin: manifest.id })),
        routes: deviceRoutes(devices)
      }
    }
  })
}

export const plugin = createDevicesPlugin({ sysfs: (commands) => createSysfs('/sys', commands), writeTimeoutMs: WRITE_TIMEOUT_MS, nodes: '/dev/vfio', pciIds: PCI_IDS_FILES })
