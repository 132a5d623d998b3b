// QEMU under KVM: the scenario of all drivers through the whole server, and the driver's conformance suite, of which a commit has a part. The host is emulated wherever
// this runs, so that it proves the same everywhere.
import t from 'tap'
import { testUnderKvm } from '../../emulated-host/kvm.ts'
import { NOT_NOW, partsOfHosts, rows, SCENARIO_ROW } from '../../emulated-host/rows.ts'
import { SCENARIO_TIMEOUT_MS, scenarioUnderKvm } from './scenario-under-kvm.ts'

const PART_TIMEOUT_MS = 1_500_000
/** The smallest supported host has two processors, and each of these takes one. */
const AT_ONCE = 2

// Each runs twice where the emulated host dies.
t.setTimeout(2 * SCENARIO_TIMEOUT_MS + 2 * PART_TIMEOUT_MS * partsOfHosts.flat().length + 300_000)
t.jobs = AT_ONCE
if (!rows.includes(SCENARIO_ROW) && partsOfHosts.length === 0) t.plan(0, NOT_NOW)
if (rows.includes(SCENARIO_ROW)) void scenarioUnderKvm(t, 'qemu')
for (const parts of partsOfHosts) {
  const cases = parts.join(',')
  void t.test(`the QEMU driver keeps the contract under KVM: ${cases.replaceAll(',', ', ')}`, { buffered: true }, async (t) => {
    const file = new URL('../../plugins/hypervisor-qemu/conformance.js', import.meta.url)
    await testUnderKvm(t, { file, env: { BERTH_CONFORMANCE_CASES: cases }, alwaysEmulated: true, processors: 1, memoryMib: 4096, timeoutMs: PART_TIMEOUT_MS * parts.length })
  })
}
