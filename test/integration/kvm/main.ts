// What almost every host has and this one may not: KVM. By hand: `node dist/test/integration/kvm/main.js`. Always on an emulated host: life.ts takes a server's folder to /run/data.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { prepareServer } from '../../emulated-host/prepared-server.ts'
import { testUnderKvm } from '../../emulated-host/kvm.ts'

const TIMEOUT_MS = 1_500_000
t.setTimeout(2 * TIMEOUT_MS + 300_000)

await t.test('one life of a machine under KVM', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-kvm-life-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const data = join(folder, 'data')
  const image = await prepareServer(t, data, 'kvm')
  await testUnderKvm(t, { file: new URL('life.js', import.meta.url), args: [image], data, alwaysEmulated: true, processors: 1, memoryMib: 4096, timeoutMs: TIMEOUT_MS })
})
