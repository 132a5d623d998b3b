// By hand: `node dist/test/integration/drivers/kvm.js DRIVER`, with the VMM's program as the conformance suites find it (BERTH_FIRECRACKER, …).
import t from 'tap'
import { SCENARIO_TIMEOUT_MS, scenarioUnderKvm } from './scenario-under-kvm.ts'

const [, , driver = 'qemu'] = process.argv
t.setTimeout(2 * SCENARIO_TIMEOUT_MS + 300_000)
await scenarioUnderKvm(t, driver)
