// One life of a machine through the API, the same for each hypervisor: what its driver cannot do is refused with 501 and its name, and all else works.
// Run as `scenario.js DRIVER [IMAGE]` by scenario.long.test.ts in a network namespace of its own, or by kvm.ts on a host with KVM: there IMAGE is one in the server's folder, /run/data.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { look, shell, startCounter } from '../../helpers/counter.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { push } from '../../helpers/images.ts'
import { lines, waitFor } from '../../helpers/machine.ts'
import { ownNetwork } from '../../helpers/own-network.ts'
import { startTestServer } from '../../helpers/server.ts'
import { namedProgram } from '../../emulated-host/named-programs.ts'
import { pluginOf, SLOW_GUEST, SLOW_SERVER, slowDriver, turnedOff, UNDER_KVM } from '../../emulated-host/slow.ts'
import { API, NAME_SERVER, OTHER, STRANGER } from '../egress-enforcement/far/contract.ts'
import { openFar, WAN, type Far } from '../egress-enforcement/far/far.ts'
import { curlImage } from './image.ts'
import { has, NAME, type Stage, type Step } from './stage.ts'
import { stepsUnderKvm } from './under-kvm.ts'

const [, , driver = '', prepared] = process.argv
/** the value that only `API.host` may see, and what the guest has in its place */
const SECRET = `secret${randomBytes(16).toString('hex')}`
const MOCK = 'mock-API_KEY'
const isSlow = process.env[UNDER_KVM] !== undefined

t.setTimeout(3_600_000)
const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const far = await openFar(t)
  const plugins = configuration(far)
  const server = await startTestServer(t, { ...prepared === undefined ? {} : { folder: '/run/data' }, ...isSlow ? SLOW_SERVER : {}, plugins })
  const image = prepared ?? await push(server, await curlImage(), 'drivers/curl:latest')
  const { runtimes }: { runtimes: ReadonlyArray<{ readonly name: string, readonly available: boolean, readonly reason?: string, readonly features: readonly string[] }> } = Object(await server.api.call('GET', '/capabilities'))
  const own = runtimes.find(({ name }) => name === driver)
  t.equal(own?.available, true, own?.reason ?? `${driver} is available`)
  if (own?.available !== true) return
  t.comment(`${driver}: ${own.features.join(', ')}`)
  const stage: Stage = { server, plugins, far, image, driver, can: new Set(own.features), before: { nonce: '', counter: 0, uptime: 0, hostname: '', random: '', bootId: '', clockError: 0 } }
  const steps: Readonly<Record<string, Step>> = {
    'create: it runs, with this hypervisor': create,
    'exec and logs': exec,
    'network and egress: the gateway\'s DNS, a credential that only its host sees, and nothing else outside': reaches,
    'stop and start: it begins anew, with the address that it had': stopped,
    'standby and restore: it goes on, and its way out with it': standby,
    'fork of the running machine': fork,
    'a snapshot, and a machine made of it': snapshot,
    ...isSlow ? stepsUnderKvm : {},
    delete: remove
  }
  for (const [name, run] of Object.entries(steps)) {
    const began = performance.now()
    await t.test(name, { timeout: 1_500_000 }, async (t) => { await run(t, stage) })
    t.comment(`${name}: ${((performance.now() - began) / 1000).toFixed(1)} s`)
  }
}

/** What is not tested here takes time all the same, and an emulated host is slower than any that the defaults are for. */
function configuration (far: Far): Stage['plugins'] {
  const { namespace, cidr } = ownNetwork()
  // After a failure: a server that stops in order removes it.
  t.teardown(async () => { if (existsSync(`/run/netns/${namespace}`)) await createHostCommands().run('ip', ['netns', 'delete', namespace]) })
  const binary = namedProgram(driver)
  const jailer = driver === 'firecracker' ? process.env['BERTH_JAILER'] : undefined
  return {
    ...turnedOff(driver),
    ...isSlow ? { resources: {}, guest: { config: SLOW_GUEST } } : { volumes: { enabled: false } },
    // What was prepared has its image.
    ...prepared === undefined ? {} : { registry: { enabled: false } },
    instances: { config: { defaults: { hypervisor: driver } } },
    networking: { config: { uplink: WAN, namespace, cidr, dns: { servers: [NAME_SERVER] } } },
    egress: { config: { roots: [join(testFolder(t, { 'roots.pem': far.authority }), 'roots.pem')], ...isSlow ? { proxy: { workers: 1, startTimeout: '5m' } } : {} } },
    [pluginOf(driver)]: { config: { ...isSlow ? slowDriver(driver) : {}, ...binary === undefined ? {} : { binary }, ...jailer === undefined ? {} : { jailer } } }
  }
}

async function create (t: Test, stage: Stage): Promise<void> {
  const { server, image } = stage
  // On a slow host the proxy comes up after the server has given up waiting for it: that is a 503, and the create is asked for again.
  const id = await eventually('the egress proxy is up', async () => await startCounter(server, image, NAME, ':', {
    skip_kernel_headers: true,
    overlay_size: '64MB',
    network: { egress: { enabled: true, enforcement: { mode: 'all' } } },
    env: { REAL: SECRET },
    credentials: { API_KEY: { source: { env: 'REAL' }, inject: [{ hosts: [API.host], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } }
  }).catch((error: unknown) => {
    if (String(error).includes('the egress proxy is not available')) return undefined
    throw error
  }), { limitMs: 900_000, pollMs: 1000 })
  t.match(await server.sdk.instances.get(id), { state: 'Running', hypervisor: driver })
  stage.before = await look(server, NAME, 1)
}

async function exec (t: Test, { server }: Stage): Promise<void> {
  t.equal(await shell(server, NAME, 'echo here'), 'here\n')
  await t.rejects(shell(server, NAME, 'exit 7'), /exit code 7/)
  t.match(await lines(server, NAME), [/^1 /, /^2 /])
}

async function reaches (t: Test, stage: Stage): Promise<void> {
  const { server } = stage
  await mediated(t, stage, NAME)
  t.equal((await shell(server, NAME, `curl -s -o /dev/null -m 30 -w '%{http_code}' -H 'Authorization: Bearer ${MOCK}' https://${OTHER.host}/other || true`)).slice(0, 3), '200', 'another host answers')
  t.notOk((await stage.far.seen()).some(({ host, authorization }) => host === OTHER.host && authorization?.includes(SECRET) === true), 'and sees nothing of the credential')
  t.equal((await shell(server, NAME, `nc -w 10 ${STRANGER} 22 < /dev/null > /dev/null 2>&1 && echo yes || echo no`)).trim(), 'no', 'nobody is reached past the proxy')
}

/** A request with the mock in place of the credential gets to its host with the real one. */
async function mediated (t: Test, { server, far }: Stage, id: string): Promise<void> {
  const path = `/${randomBytes(8).toString('hex')}`
  t.equal(await shell(server, id, `curl -sS -m 60 -H 'Authorization: Bearer ${MOCK}' https://${API.host}${path}`), `hello from ${API.host}`)
  t.same((await far.seen()).filter(({ url }) => url === path).map(({ authorization }) => authorization), [`Bearer ${SECRET}`])
}

async function stopped (t: Test, stage: Stage): Promise<void> {
  const { server, before } = stage
  const { network } = await server.sdk.instances.get(NAME)
  await server.sdk.instances.stop(NAME)
  t.match(await server.sdk.instances.get(NAME), { state: 'Stopped' })
  await server.sdk.instances.start(NAME, {})
  t.match(await waitFor(server, NAME, 'Running'), { network: { ip: network?.ip ?? 'none', mac: network?.mac ?? 'none' } })
  await shell(server, NAME, 'while [ ! -e /dev/shm/state ]; do sleep 0.1; done')
  stage.before = await look(server, NAME, 1)
  t.not(stage.before.nonce, before.nonce, 'another run of its program')
}

async function standby (t: Test, stage: Stage): Promise<void> {
  const { server } = stage
  if (!await has(t, stage, 'standby', async () => await server.sdk.instances.standby(NAME))) return
  for (const round of ['first', 'second']) {
    t.match(await server.sdk.instances.standby(NAME), { state: 'Standby' }, `${round} standby`)
    t.match(await server.sdk.instances.restore(NAME), { state: 'Running' })
    const after = await look(server, NAME, stage.before.counter)
    t.equal(after.nonce, stage.before.nonce, `${round} restore: the program goes on`)
    t.ok(after.counter > stage.before.counter, 'and counts on')
    t.ok(after.clockError <= 2, `its clock is ${after.clockError} s off`)
    stage.before = after
  }
  await mediated(t, stage, NAME)
}

async function fork (t: Test, stage: Stage): Promise<void> {
  const { server, before } = stage
  if (!await has(t, stage, 'fork', async () => await server.sdk.instances.fork(NAME, { name: 'twin', from_running: true }))) return
  const twin = await server.sdk.instances.fork(NAME, { name: 'twin', from_running: true })
  const seen = await look(server, twin.id, before.counter)
  t.equal(seen.nonce, before.nonce, 'with its memory')
  t.not(seen.random, (await look(server, NAME)).random, 'and randomness of its own')
  t.ok(seen.clockError <= 2, `its clock is ${seen.clockError} s off`)
  const [one, other] = [await server.sdk.instances.get(NAME), await server.sdk.instances.get(twin.id)]
  t.not(other.network?.ip, one.network?.ip, 'an address of its own')
  await mediated(t, stage, twin.id)
  await server.sdk.instances.delete(twin.id)
}

async function snapshot (t: Test, stage: Stage): Promise<void> {
  const { server, before } = stage
  if (!await has(t, stage, 'snapshots', async () => await server.sdk.instances.snapshots.create(NAME, { kind: 'Standby', name: 'moment' }))) return
  const { id } = await server.sdk.instances.snapshots.create(NAME, { kind: 'Standby', name: 'moment' })
  const copy = await server.sdk.snapshots.fork(id, { name: 'copy', target_state: 'Running' })
  t.equal((await look(server, copy.id)).nonce, before.nonce)
  await server.sdk.instances.delete(copy.id)
  await server.sdk.snapshots.delete(id)
}

async function remove (t: Test, { server }: Stage): Promise<void> {
  await server.sdk.instances.delete(NAME)
  await t.rejects(server.sdk.instances.get(NAME), /404/)
  t.same(await server.sdk.instances.list(), [])
}
