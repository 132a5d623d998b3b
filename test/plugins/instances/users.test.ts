// Users of VMs: each VM has its own, and there may be more instances than users.
import { chown, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { LiveInstance } from '../../../plugins/instances/model/live-instance.ts'
import { failOnce } from '../../helpers/fail-once.ts'
import { startApp, type StartOptions, type TestApp } from './app.ts'
import { until } from './crash.ts'

const BASE = 1_900_000_000
const NOBODY = BASE - 1
const asRoot = { skip: process.getuid?.() === 0 ? false as const : 'VMs have users of their own only when the server is root' }
/** room for two VMs */
const TWO: StartOptions = { config: { vmUserCount: 2 } }
const FULL = { status: 409, body: { code: 'insufficient_resources', message: 'this host has no free VM user left: all 2 are in use' } }

const create = async ({ call }: TestApp, name: string, fields: Record<string, unknown> = {}) => await call('POST', '/instances', { name, image: 'test', overlay_size: '32MB', ...fields })
const act = async ({ call }: TestApp, name: string, verb: string) => await call('POST', `/instances/${name}/${verb}`)
const userOf = ({ host }: TestApp): number | undefined => host.vm.spec.identity?.uid

/** Who owns the files of an instance beside the server. */
async function ownersOf ({ dataDir }: TestApp, id: string): Promise<number[]> {
  const folder = join(dataDir, 'instances', id)
  const names = await readdir(folder, { recursive: true })
  const owners = await Promise.all(names.map(async (name) => (await stat(join(folder, name))).uid))
  return [...new Set(owners)].filter((uid) => uid !== 0)
}

t.test('an instance at rest does without its user when a VM needs it, and its files then belong to nobody\'s VM', asRoot, async (t) => {
  const app = await startApp(t, TWO)
  const first = await app.make('first')
  const user = userOf(app)
  const second = await app.make('second')
  t.match(await create(app, 'third'), FULL, 'every user has a VM')
  await act(app, 'first', 'stop')
  t.same(await ownersOf(app, first), [user], 'until then it keeps its user')
  t.equal((await create(app, 'third')).status, 201)
  t.equal(userOf(app), user)
  t.same(await ownersOf(app, first), [NOBODY])
  t.match(await act(app, 'first', 'start'), FULL)
  await act(app, 'second', 'stop')
  t.match(await act(app, 'first', 'start'), { status: 200 })
  t.same(await ownersOf(app, first), [userOf(app)])
  t.same(await ownersOf(app, second), [NOBODY])
  t.not(userOf(app), user)
})

t.test('one in standby keeps its memory and gets both back with another user', asRoot, async (t) => {
  const app = await startApp(t, TWO)
  const first = await app.make('first')
  const user = userOf(app)
  await app.make('second')
  await app.waitFor('first', 'Running')
  t.match(await act(app, 'first', 'standby'), { status: 200 })
  t.equal((await create(app, 'third')).status, 201)
  t.equal(userOf(app), user)
  t.same(await ownersOf(app, first), [NOBODY])
  t.ok((await readdir(join(app.dataDir, 'instances', first))).includes('memory'))
  t.match(await act(app, 'first', 'restore'), FULL)
  t.match((await app.call('GET', '/instances/first')).body, { state: 'Standby' })
  await act(app, 'second', 'stop')
  t.match(await act(app, 'first', 'restore'), { status: 200, body: { state: 'Running' } })
  t.same(await ownersOf(app, first), [userOf(app)])
})

t.test('one whose disk and memory are on their way back to it keeps its user until they are there', asRoot, async (t) => {
  const app = await startApp(t, { config: { vmUserCount: 1 } })
  const first = await app.make('first')
  const user = userOf(app)
  await app.waitFor('first', 'Running')
  await act(app, 'first', 'standby')
  t.match(await act(app, 'first', 'restore'), { status: 200, body: { state: 'Running' } })
  failOnce(t, LiveInstance.prototype, 'save', { done: false })
  // Its disk is as before the restore by then, and the change of its row is not stored.
  app.host.vm.set({ status: 'gone' })
  t.match((await app.waitFor('first', 'Unknown')).body, { state: 'Unknown' })
  t.match(await create(app, 'second'), { status: 409, body: { code: 'insufficient_resources' } })
  t.same(await ownersOf(app, first), [user])
  await until(async () => (await app.call('GET', '/instances/first')).body['state'] === 'Standby')
  // The state is known before the call that puts its things back has ended, and until then it gives nothing up.
  await until(async () => (await create(app, 'second')).status === 201)
  t.same(await ownersOf(app, first), [NOBODY])
})

t.test('the one that has been at rest for longest gives its user up', asRoot, async (t) => {
  const app = await startApp(t, TWO)
  const [first, second] = [await app.make('first'), await app.make('second')]
  await act(app, 'second', 'stop')
  await act(app, 'first', 'stop')
  t.equal((await create(app, 'third')).status, 201)
  t.same(await ownersOf(app, second), [NOBODY])
  t.not((await ownersOf(app, first))[0], NOBODY)
})

t.test('a copy of one without a user has a user, and so has what is made of it', asRoot, async (t) => {
  const app = await startApp(t, TWO)
  const first = await app.make('first')
  await act(app, 'first', 'stop')
  await app.make('second')
  await app.make('third')
  t.same(await ownersOf(app, first), [NOBODY])
  await act(app, 'second', 'stop')
  const fork = await app.call('POST', '/instances/first/fork', { name: 'fork', target_state: 'Running' })
  t.match(fork, { status: 201 })
  t.same(await ownersOf(app, String(fork.body['id'])), [userOf(app)])
  t.same(await ownersOf(app, first), [NOBODY], 'a fork of it does not take it a user')
})

t.test('a crash between the files and the row costs nothing', asRoot, async (t) => {
  const app = await startApp(t, TWO)
  const first = await app.make('first')
  const user = userOf(app)
  const disk = join(app.dataDir, 'instances', first, 'overlay.ext4')
  await act(app, 'first', 'stop')
  await chown(disk, NOBODY, NOBODY)
  t.match(await act(app, 'first', 'start'), { status: 200 })
  t.same(await ownersOf(app, first), [user], 'the giving was taken back')
  await act(app, 'first', 'stop')
  await chown(disk, NOBODY, NOBODY)
  await app.make('second')
  t.match(await create(app, 'third'), { status: 201 })
  t.same(await ownersOf(app, first), [NOBODY], 'the giving was finished')
})

t.test('creates at the same time get one user each', asRoot, async (t) => {
  const app = await startApp(t, { config: { vmUserCount: 6 } })
  const stopped = Array.from({ length: 6 }, (_, index) => `old-${index}`)
  for (const name of stopped) await app.make(name)
  await Promise.all(stopped.map(async (name) => await act(app, name, 'stop')))
  const answers = await Promise.all(Array.from({ length: 9 }, async (_, index) => await create(app, `new-${index}`)))
  t.same(answers.map(({ status }) => status).toSorted(), [201, 201, 201, 201, 201, 201, 409, 409, 409])
  t.equal(new Set(app.host.vms.slice(-6).map(({ spec }) => spec.identity?.uid)).size, 6)
})
