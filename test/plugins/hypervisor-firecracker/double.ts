// The Firecracker driver on its protocol double, importable by a server process that the conformance cases crash.
import { createFirecrackerDriver } from '../../../plugins/hypervisor-firecracker/driver.ts'
import { doubleDriver } from '../../vmm-double/driver.ts'
import { config } from './machine.ts'

// The double is a script, and a jail has nothing that would run it.
export const double = doubleDriver('firecracker', config, (given, deps) => createFirecrackerDriver(given, deps, async () => await Promise.resolve('the double is a script')))
export const makeDriver = double.makeDriver
