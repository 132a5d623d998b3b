// The Firecracker driver keeps the contract, with real VMs on a host with KVM: this one, or an emulated one.
import t from 'tap'
import { hypervisorConformance } from '../../contracts/hypervisor.ts'
import { testUnderKvm } from '../../emulated-host/kvm.ts'
import { UNDER_KVM } from '../../emulated-host/slow.ts'
import { commands, guest, makeMachines } from '../hypervisor-qemu/machine.ts'
import { findJailer } from '../../../plugins/hypervisor-firecracker/jail.ts'
import { binary, config, folder, makeDriver, missing } from './machine.ts'

t.setTimeout(3_600_000)
const reason = await missing()
const cases = process.env['BERTH_CONFORMANCE_CASES']
if (reason !== undefined) {
  t.plan(0, reason)
} else if (process.env[UNDER_KVM] === undefined) {
  await testUnderKvm(t, { file: new URL(import.meta.url), env: { BERTH_FIRECRACKER: binary, BERTH_JAILER: config.jailer, ...cases === undefined ? {} : { BERTH_CONFORMANCE_CASES: cases } }, processors: 1, memoryMib: 3072, timeoutMs: 1_800_000 })
} else {
  const machines = await makeMachines()
  t.teardown(() => machines.remove())
  const jailer = await findJailer(config, { commands, folder })
  t.comment(typeof jailer === 'string' ? `without a jailer: ${jailer}` : `with the jailer ${jailer.path}`)
  if (config.jailer.includes('/')) t.match(jailer, { path: String }, 'the jailer that was named can be used')
  await hypervisorConformance(t, {
    module: new URL('machine.js', import.meta.url), makeDriver, guest, makeMachine: machines.make, hasNetwork: true,
    // Every VM is jailed.
    ...typeof jailer === 'string' ? {} : { hasJailer: true, identity: { uid: 61_010, gid: 61_010 } }
  })
}
