// The Cloud Hypervisor driver on its protocol double, importable by a server process that the conformance cases crash.
import { createCloudHypervisorDriver } from '../../../plugins/hypervisor-cloud-hypervisor/driver.ts'
import { doubleDriver } from '../../vmm-double/driver.ts'
import { config } from './machine.ts'

export const double = doubleDriver('cloud-hypervisor', config, createCloudHypervisorDriver)
export const makeDriver = double.makeDriver
