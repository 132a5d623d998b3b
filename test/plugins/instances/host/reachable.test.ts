import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { requireReachable } from '../../../../plugins/instances/host/reachable.ts'

t.test('a data folder below a closed one is refused, naming the closed one', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-reach-'))
  t.teardown(() => rm(folder, { recursive: true }))
  const dataDir = join(folder, 'a', 'data')
  await mkdir(dataDir, { recursive: true })
  await chmod(folder, 0o700)
  await t.rejects(requireReachable(dataDir), { message: new RegExp(`^server.dataDir: .*${folder} has mode 700`) })
  await chmod(folder, 0o711)
  await t.resolves(requireReachable(dataDir))
  await chmod(dataDir, 0o700)
  await t.rejects(requireReachable(dataDir), { message: /data has mode 700/ })
})
