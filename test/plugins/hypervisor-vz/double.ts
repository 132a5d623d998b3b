// The driver for macOS on a protocol double of vfkit, importable by a server process that the conformance cases crash.
import type { RestDriverDeps } from '../../../core/library/vmm/rest-driver.ts'
import type { RestVmmConfig } from '../../../core/library/vmm/settings.ts'
import { createVzDriver } from '../../../plugins/hypervisor-vz/driver.ts'
import type { HypervisorDriver } from '../../../core/library/hypervisor.ts'
import { doubleDriver } from '../../vmm-double/driver.ts'
import { config } from './machine.ts'

function create ({ imageTimeout: _, ...config }: RestVmmConfig, { guest, ...deps }: RestDriverDeps): HypervisorDriver {
  const system = async (): Promise<{ readonly kernel: string, readonly initrd: string, readonly version: string }> => {
    if (guest === undefined) throw new Error('a double has a system for guests')
    const { kernel, version } = await guest.system()
    return { kernel, initrd: kernel, version }
  }
  return createVzDriver(config, { ...deps, guest: { system }, platform: 'darwin' })
}

export const double = doubleDriver('vfkit', { ...config, imageTimeout: '1m' }, create)
export const makeDriver = double.makeDriver
