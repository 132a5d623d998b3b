// The QEMU driver keeps the contract, with real VMs.
import t from 'tap'
import { hypervisorConformance } from '../../contracts/hypervisor.ts'
import { guest, makeDriver, makeMachines } from './machine.ts'

// Some thirty VMs boot, under emulation where there is no KVM.
t.setTimeout(1_800_000)
const machines = await makeMachines()
t.teardown(() => machines.remove())

await hypervisorConformance(t, { module: new URL('machine.js', import.meta.url), makeDriver, guest, makeMachine: machines.make, hasNetwork: true })
