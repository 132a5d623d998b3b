// The Firecracker driver on its protocol double, importable by a server process that the conformance cases crash.
import { createFirecrackerDriver } from '../../../plugins/hypervisor-firecracker/driver.ts'
import { doubleDriver } from '../../vmm-double/driver.ts'
import { config } from './machine.ts'

export const double = doubleDriver('firecracker', config, createFirecrackerDriver)
export const makeDriver = double.makeDriver
