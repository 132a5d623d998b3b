// The scenario that all drivers have, on an emulated host with KVM.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { prepareServer } from '../../emulated-host/prepared-server.ts'
import { testUnderKvm } from '../../emulated-host/kvm.ts'
import { namedPrograms } from '../../emulated-host/named-programs.ts'
import { push } from '../../helpers/images.ts'
import { curlImage } from './image.ts'

/** of one run; there may be a second one */
export const SCENARIO_TIMEOUT_MS = 1_800_000
/** what the guests' network and the way out take of the host's kernel */
const MODULES = ['nf_tables', 'nft_ct', 'nft_chain_nat', 'nft_masq', 'nft_redir', 'nft_fib_inet', 'nft_tproxy', 'nft_socket', 'veth', 'bridge', 'sch_tbf', 'sch_htb', 'sch_fq_codel', 'sch_ingress', 'cls_u32', 'act_police']

/** Prepares the server's data here, where that takes seconds, and runs the scenario there. */
export async function scenarioUnderKvm (t: Test, driver: string): Promise<void> {
  await t.test(`the scenario of all drivers, with ${driver} under KVM`, { buffered: true }, async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-kvm-scenario-'))
    t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
    const data = join(folder, 'data')
    let image = ''
    await prepareServer(t, data, 'drivers', async (server) => { image = await push(server, await curlImage(), 'drivers/curl:latest') })
    // Made by TCG, and of no use there.
    await rm(join(data, 'data/templates'), { recursive: true, force: true })
    await testUnderKvm(t, {
      file: new URL('scenario.js', import.meta.url), args: [driver, image], data, env: namedPrograms(),
      alwaysEmulated: true, processors: 1, memoryMib: 4096, timeoutMs: SCENARIO_TIMEOUT_MS, before: `for module in ${MODULES.join(' ')}; do modprobe $module; done`
    })
  })
}
