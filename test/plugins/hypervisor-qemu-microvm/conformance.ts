// The driver for the board microvm keeps the contract, with real VMs. Run by `npm run conformance`; boots.long.test.ts has what of it is in the long tier.
import t from 'tap'
import { hypervisorConformance } from '../../contracts/hypervisor.ts'
import { guest, makeMachines } from '../hypervisor-qemu/machine.ts'
import { makeDriver } from './machine.ts'

t.setTimeout(3_600_000)
const machines = await makeMachines()
t.teardown(() => machines.remove())

await hypervisorConformance(t, { module: new URL('machine.js', import.meta.url), makeDriver, guest, makeMachine: machines.make, hasNetwork: true })
