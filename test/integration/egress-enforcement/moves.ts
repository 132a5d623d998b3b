// What becomes of policies, addresses and connections when an instance is deleted, forked, put into standby and restored.
// Run by moves.long.test.ts in a network namespace of its own, whose guests share a single address; and once more with many.
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { API, STRANGER, type Seen } from './far/contract.ts'
import { addGuest, attempt, fetchFrom, guestOf, mediated, mediates, MOCK, refused, SECRET, setScene, type Guest, type Scene } from './scene.ts'
import { eventually } from '../../helpers/eventually.ts'

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  await t.test('A29, A30: an instance that gets the address of one that was deleted gets nothing else of it', { timeout: 900_000 }, reused)
  await t.test('P23: forks, standby and restore', { timeout: 900_000 }, async (t) => {
    const scene = await setScene(t)
    const source = await addGuest(scene, 'source', mediated('all'))
    await t.test('A29: a fork has an address and a policy of its own, and no connection of its source', async (t) => { await forked(t, scene, source) })
    await t.test('A29: connections of before standby are over for the origin, and after restore for the guest', async (t) => { await slept(t, scene, source) })
    await t.test('A30: while it sleeps nobody else has its address or its credential', async (t) => { await besideSleeper(t, scene, source) })
  })
}

/** A request, as its origin saw it. */
async function request ({ far }: Scene, guest: Guest, path: string): Promise<Seen | undefined> {
  await fetchFrom(guest, `https://${API.host}${path}`, `Authorization: ${MOCK}`)
  return (await far.seen()).find(({ url }) => url === path)
}

/**
 * Opens a stream in the guest, which now and then says something itself, as a program does that wants to know whether anybody is there. The file has what came, and
 * `ended` when it is over.
 */
async function openStream ({ far }: Scene, guest: Guest, path: string, file: string): Promise<void> {
  const request = `GET ${path} HTTP/1.1\\r\\nHost: ${API.host}\\r\\n\\r\\n`
  await guest.run(`rm -f ${file}.stop; ((while [ ! -e ${file}.stop ]; do printf '${request}'; sleep 0.5; done) | nc ${API.address} 80 > ${file} 2>&1; echo ended >> ${file}) > /dev/null 2>&1 &`)
  await eventually(`the stream ${path} is open`, async () => (await far.streams()).includes(path))
}

async function reused (t: Test): Promise<void> {
  // One address beside the gateway's.
  const scene = await setScene(t, 30)
  const { server, far } = scene
  const first = await addGuest(scene, 'first', mediated('http_https_only'))
  const before = await request(scene, first, '/first')
  t.equal(before?.authorization, `Bearer ${SECRET}`)
  await openStream(scene, first, '/stream-first', '/tmp/stream')
  await first.run(`(nc ${STRANGER} 8443 > /tmp/direct; sleep 1) > /dev/null 2>&1 &`)
  await server.sdk.instances.delete(first.id)
  await eventually('the origin has lost the stream', async () => (await far.streams()).length === 0)

  const second = await addGuest(scene, 'second', mediated('all', null))
  t.equal(second.ip, first.ip, 'it has the address of the first')
  const after = await request(scene, second, '/second')
  t.equal(after?.authorization, MOCK, 'and not its credential')
  t.not(after?.port, before?.port, 'nor its connection to the origin')
  t.equal(after?.resumed, false, 'nor its TLS session there')
  refused(t, await attempt(second, 'tcp', [`${STRANGER}:22`, `${STRANGER}:8443`]), 'nor its mode')
  const { entries } = await server.api.call('GET', `/instances/${second.id}/egress?limit=1000`) as { entries: { path?: string }[] }
  t.same([...new Set(entries.flatMap(({ path }) => path ?? []))], ['/second'], 'nor its log')
  await server.sdk.instances.delete(second.id)

  const third = await addGuest(scene, 'third', mediated('none'))
  t.equal(third.ip, first.ip)
  t.equal(await fetchFrom(third, `http://${API.address}/third`), `hello from ${API.host}`, 'a third one goes directly out')
  t.equal((await attempt(third, 'tcp', [`${STRANGER}:22`]))[0]?.outcome, 'open')
  await server.sdk.instances.delete(third.id)
}

async function forked (t: Test, scene: Scene, source: Guest): Promise<void> {
  const { server, far } = scene
  const before = await request(scene, source, '/before-fork')
  await openStream(scene, source, '/stream-fork', '/tmp/stream-fork')
  const { id } = await server.sdk.instances.fork(source.id, { name: 'fork', from_running: true })
  const fork = await guestOf(server, id)
  t.not(fork.ip, source.ip)
  await eventually('the stream is over in the fork', async () => (await fork.run('cat /tmp/stream-fork')).includes('ended'))
  t.same(await far.streams(), ['/stream-fork'], 'the source\'s goes on')
  t.notMatch(await source.run('cat /tmp/stream-fork'), /ended/, 'also in its own eyes')
  await mediates(t, scene, fork, 'the fork has the policy')
  const after = await request(scene, fork, '/after-fork')
  t.not(after?.port, before?.port, 'over connections of its own')
  refused(t, await attempt(fork, 'tcp', [`${STRANGER}:22`, `${STRANGER}:8443`]), 'and its mode')
  // Each has its own values from here on.
  await server.sdk.instances.update(id, { env: { REAL: `${SECRET}fork` } })
  await mediates(t, scene, fork, 'a value of the fork\'s', `${SECRET}fork`)
  await mediates(t, scene, source, 'is not the source\'s')
  await server.sdk.instances.delete(id)
  await mediates(t, scene, source, 'which outlives its fork')
  await source.run('touch /tmp/stream-fork.stop; killall nc')
}

async function slept (t: Test, scene: Scene, source: Guest): Promise<void> {
  const { server, far } = scene
  await openStream(scene, source, '/stream-sleep', '/tmp/stream-sleep')
  const before = await request(scene, source, '/before-sleep')
  await server.sdk.instances.standby(source.id)
  await eventually('the origin has lost the stream', async () => (await far.streams()).length === 0)
  await server.sdk.instances.restore(source.id)
  const after = await request(scene, source, '/after-sleep')
  t.equal(after?.authorization, `Bearer ${SECRET}`)
  t.not(after?.port, before?.port, 'over another connection')
  await eventually('the stream is over in the guest', async () => (await source.run('cat /tmp/stream-sleep')).includes('ended'))
  refused(t, await attempt(source, 'tcp', [`${STRANGER}:22`]), 'its mode is the same')
}

async function besideSleeper (t: Test, scene: Scene, source: Guest): Promise<void> {
  const { server } = scene
  await server.sdk.instances.standby(source.id)
  const other = await addGuest(scene, 'other', mediated('http_https_only', null))
  t.not(other.ip, source.ip, 'a sleeper keeps its address')
  t.equal((await request(scene, other, '/beside'))?.authorization, MOCK)
  await server.sdk.instances.restore(source.id)
  await mediates(t, scene, source, 'after restore')
  await server.sdk.instances.delete(other.id)
  await mediates(t, scene, source, 'after another has gone')
}
