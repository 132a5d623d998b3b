// More instances than users of VMs, with real VMs: disk and memory of an instance change hands, and its program goes on.
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { failureOf } from '../helpers/failure.ts'
import { look as lookAt, startCounter, type Seen } from '../helpers/counter.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'

/** one before the first user of a VM */
const NOBODY = 1_899_999_999
const isRoot = process.getuid?.() === 0

t.test('a machine in standby, and a stopped one, go on as other users when theirs has another machine', { timeout: 300_000, skip: isRoot ? false : 'VMs have users of their own only when the server is root' }, async (t) => {
  const server = await startTestServer(t, { plugins: { instances: { config: { vmUserCount: 2 } } } })
  const { sdk } = server
  const image = await push(server, await busyboxImage(), 'users/busybox:latest')
  const look = async (id: string, above?: number): Promise<Seen> => await lookAt(server, id, above)
  const ownerOf = async (id: string): Promise<number> => (await stat(join(server.dataDir, 'instances', id, 'overlay.ext4'))).uid
  const first = await startCounter(server, image, 'first')
  const before = await look(first)
  const user = await ownerOf(first)
  t.match(await sdk.instances.standby(first), { state: 'Standby' })
  const second = await startCounter(server, image, 'second')
  const third = await startCounter(server, image, 'third')
  const heir = await ownerOf(second) === user ? second : third
  const stopped = heir === second ? third : second
  t.equal(await ownerOf(heir), user)
  t.equal(await ownerOf(first), NOBODY)
  t.match(await failureOf(sdk.instances.restore(first)), { status: 409, error: { code: 'insufficient_resources' } })

  await sdk.instances.stop(stopped)
  t.match(await sdk.instances.restore(first), { state: 'Running' })
  t.not(await ownerOf(first), user)
  const after = await look(first, before.counter)
  t.equal(after.nonce, before.nonce, 'the memory is the same')

  t.equal(await ownerOf(stopped), NOBODY)
  await sdk.instances.standby(first)
  t.match(await sdk.instances.start(stopped, {}), { state: /Initializing|Running/ })
  t.match(await sdk.instances.wait(stopped, { state: 'Running', timeout: '60s' }), { state: 'Running', timed_out: false })
  t.equal(await ownerOf(first), NOBODY)
  for (const id of [first, second, third]) await sdk.instances.delete(id)
})
