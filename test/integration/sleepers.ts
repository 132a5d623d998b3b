// Twenty real machines, forks of one snapshot, that sleep and are called at once by name and by published port; and the server is killed while it wakes them.
// Run by sleepers.long.test.ts in a network namespace of its own.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { argumentsOf, processIds } from '../../core/process/find.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createMachine, follow } from '../helpers/machine.ts'
import { ownNetwork } from '../helpers/own-network.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'
import { skipReason } from '../plugins/ingress/stage.ts'
import { freePort } from '../helpers/free-port.ts'

const COUNT = 20
/** to each sleeper, half by its name and half by its port */
const CALLERS = 10
const PROGRAM = 80
const commands = createHostCommands()

interface Sleeper { readonly name: string, readonly id: string, readonly hostPort: number }
interface Place { readonly server: TestServer, readonly http: number, readonly sleepers: readonly Sleeper[] }

const reason = skipReason() || skipWithout('snapshots')
if (reason === false) await t.test('20 machines that sleep are woken by those who call them, by name and by port', { timeout: 1_500_000 }, woken)
else t.plan(0, reason)

async function woken (t: Test): Promise<void> {
  // An uplink that leads nowhere: the network is not closed, so that ports can be published.
  await commands.run('ip', ['-batch', '-'], { input: 'link set lo up\nlink add wan type veth peer name nowhere\naddress add 198.51.100.1/24 dev wan\nlink set wan up\n' })
  const { namespace, cidr } = ownNetwork()
  t.teardown(async () => { if (existsSync(`/run/netns/${namespace}`)) await commands.run('ip', ['netns', 'delete', namespace]) })
  const http = await freePort('127.0.0.1')
  const server = await startTestServer(t, {
    plugins: {
      networking: { config: { uplink: 'wan', namespace, cidr } },
      ingress: { config: { listen: { address: '127.0.0.1', http: [http] } } }
    }
  })
  const place = { server, http, sleepers: await makeSleepers(server) }
  const { sleepers } = place
  await server.sdk.ingresses.create({ name: 'all', rules: [{ match: { hostname: '{instance}.test' }, target: { instance: '{instance}', port: PROGRAM } }] })
  t.ok((await states(place)).every((state) => state === 'Standby'), 'nobody is awake')

  const before = await restores(place)
  const answers = await Promise.all(callAll(place, CALLERS))
  t.same(answers, sleepers.flatMap(({ name }) => Array.from({ length: CALLERS }, () => `${name}\n`)), `all ${COUNT * CALLERS} callers are served, each by the machine that it called`)
  t.same(since(before, await restores(place)), sleepers.map(() => 1), 'each was woken once')
  t.same(await vms(place), sleepers.map(() => 1))
  const files = await foldersOf(place)

  t.comment('killed while they wake')
  for (const { id } of sleepers) await server.sdk.instances.standby(id)
  const asleep = await restores(place)
  const cut = Promise.allSettled(callAll(place, 2))
  await eventually('some that are awake', async () => since(asleep, await restores(place)).filter((count) => count > 0).length >= 3, { pollMs: 5 })
  await server.kill9()
  const outcomes = await cut
  t.ok(outcomes.every((outcome) => outcome.status === 'rejected' || /^sleeper-\d+\n$|server that knows this host is away/.test(outcome.value)), JSON.stringify(outcomes.filter(({ status }) => status === 'fulfilled')))
  t.ok(since(asleep, await restores(place)).includes(0), 'some were asleep still')
  await server.restart()
  const asleepStill = (await states(place)).map((state) => state === 'Standby')
  const then = await restores(place)
  t.same(await Promise.all(callAll(place, 2)), sleepers.flatMap(({ name }) => [`${name}\n`, `${name}\n`]), 'the next server serves all')
  t.same(since(then, await restores(place)), asleepStill.map((isAsleep) => isAsleep ? 1 : 0), 'and wakes once who is asleep still')
  t.same(await vms(place), sleepers.map(() => 1), 'there is one VM of each')
  await eventually('the files of all to be as after a waking without a death', async () => JSON.stringify(await foldersOf(place)) === JSON.stringify(files), { explain: async () => JSON.stringify([files, await foldersOf(place)]) })

  for (const { id } of sleepers) await server.sdk.instances.delete(id)
  await server.sdk.ingresses.delete('all')
  t.notMatch((await commands.run('nft', ['list', 'tables'])).stdout, /-ports/, 'no rule is left')
  t.same(await vms(place), sleepers.map(() => 0))
  t.same(await readdir(join(server.dataDir, 'ingress/nginx/requests')), [], 'no log of a machine that is no more')
}

/** Forks of one machine's snapshot, all asleep, each with a port of the host. */
async function makeSleepers (server: TestServer): Promise<Sleeper[]> {
  const image = await push(server, await busyboxImage({}, [
    { path: 'srv', type: 'dir' }, { path: 'srv/cgi-bin', type: 'dir' },
    { path: 'srv/cgi-bin/name', mode: 0o755, content: '#!/bin/sh\nprintf "Content-Type: text/plain\\r\\n\\r\\n"\ncat /proc/sys/kernel/hostname\n' }
  ]), 'sleepers/web:latest')
  const { id: first } = await createMachine(server, image, { name: 'first', entrypoint: [], cmd: ['/bin/sh', '-c', `httpd -p ${PROGRAM} -h /srv && echo ready; exec sleep 1000000`] })
  await follow(server, first, (line) => line.includes('ready'))
  const { id: snapshot } = await server.sdk.instances.snapshots.create(first, { kind: 'Standby', name: 'ready' })
  await server.sdk.instances.delete(first)
  const sleepers: Sleeper[] = []
  for (let n = 1; n <= COUNT; n++) {
    const name = `sleeper-${n}`
    const { id } = await server.sdk.snapshots.fork(snapshot, { name, target_state: 'Standby' })
    const { host_port: hostPort } = await server.api.call('POST', `/instances/${id}/ports`, { instance_port: PROGRAM }) as { host_port: number }
    sleepers.push({ name, id, hostPort })
  }
  return sleepers
}

function callAll ({ http, sleepers }: Place, each: number): Promise<string>[] {
  return sleepers.flatMap(({ name, hostPort }) => Array.from({ length: each }, async (_, n) => await call(n % 2 === 0 ? http : hostPort, `${name}.test`)))
}

async function call (port: number, host: string): Promise<string> {
  const asked = request({ host: '127.0.0.1', port, path: '/cgi-bin/name', headers: { host }, agent: false })
  asked.end()
  const [response] = await once(asked, 'response')
  return await text(response)
}

async function states ({ server, sleepers }: Place): Promise<string[]> {
  return await Promise.all(sleepers.map(async ({ id }) => (await server.sdk.instances.get(id)).state))
}

/** How often a VM of each has come out of its image. */
async function restores ({ server, sleepers }: Place): Promise<number[]> {
  return await Promise.all(sleepers.map(async ({ id }) => (await readFile(join(server.dataDir, 'instances', id, 'operations.log'), 'utf8').catch(() => '')).split('\n').filter((line) => line.includes('restore: VM runs')).length))
}

function since (before: readonly number[], now: readonly number[]): number[] {
  return now.map((count, index) => count - (before[index] ?? 0))
}

/** Processes of QEMU for each. */
async function vms ({ server, sleepers }: Place): Promise<number[]> {
  const commandLines = await Promise.all((await processIds()).map(async (pid) => (await argumentsOf(pid)).join(' ')))
  return sleepers.map(({ id }) => commandLines.filter((words) => words.startsWith('qemu-system') && words.includes(join(server.dataDir, 'instances', id))).length)
}

async function foldersOf ({ server, sleepers }: Place): Promise<string[][]> {
  return await Promise.all(sleepers.map(async ({ id }) => (await readdir(join(server.dataDir, 'instances', id))).sort()))
}
