// QEMU under KVM, on an emulated host: for one commit the scenario of all drivers through the whole server, for another one a part of the driver's conformance suite.
// All together take half an hour there, so a run plays one of them. The host is emulated wherever this runs, so that it proves the same everywhere.
import t from 'tap'
import { PARTS } from '../../contracts/hypervisor.ts'
import { testUnderKvm } from '../../emulated-host/kvm.ts'
import { shareOfCommit } from '../../helpers/share-of-commit.ts'
import { scenarioUnderKvm } from './scenario-under-kvm.ts'

const TIMEOUT_MS = 1_500_000
const SCENARIO = 'the scenario of all drivers, with qemu under KVM'

t.setTimeout((PARTS.length + 1) * 2 * TIMEOUT_MS)
for (const row of shareOfCommit([SCENARIO, ...PARTS], PARTS.length + 1)) {
  if (row === SCENARIO) {
    await scenarioUnderKvm(t, 'qemu')
    continue
  }
  await t.test(`the QEMU driver keeps the contract under KVM: ${row.replaceAll(',', ', ')}`, async (t) => {
    const file = new URL('../../plugins/hypervisor-qemu/conformance.js', import.meta.url)
    await testUnderKvm(t, { file, env: { BERTH_CONFORMANCE_CASES: row }, alwaysEmulated: true, processors: 1, memoryMib: 4096, timeoutMs: TIMEOUT_MS })
  })
}
