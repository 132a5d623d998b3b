// What the official SDK asks for of a mediated way out, with one small machine: create with credentials, other values for them, what the proxy has written down,
// and the ways in which a machine comes up again. Run by egress-sdk.long.test.ts in a network namespace of its own.
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { shell } from '../../helpers/counter.ts'
import { failureOf } from '../../helpers/failure.ts'
import { createShell, lines, waitFor } from '../../helpers/machine.ts'
import { figure } from '../../helpers/metrics.ts'
import { pushBareImage } from './image.ts'
import { ORIGINS } from './origins/contract.ts'
import { valuesOf } from './origins/host.ts'
import { openWorld, type World } from './vm.ts'
import { eventually } from '../../helpers/eventually.ts'

const CREDENTIALS = { API_KEY: { source: { env: 'REAL_KEY' }, inject: [{ hosts: [ORIGINS.api], as: { header: 'Authorization', format: 'Bearer ${value}' } }] } }

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const world = await openWorld(t, { instances: { config: { templates: { enabled: true, spares: 1, quiet: '100ms' } } } })
  const image = await pushBareImage(world.server)
  const old = world.secrets.REAL_KEY
  const next = `${old}-next`
  const tests: Readonly<Record<string, (t: Test) => Promise<void>>> = {
    'an instance with credentials is created, and its requests carry them': async (t) => await created(t, world, image, old),
    'one that is made of a spare VM is mediated before it runs': async (t) => await spare(t, world, image, old),
    'other values are carried as soon as the update has answered': async (t) => await updated(t, world, next),
    'they are carried after standby, restore, stop and start, and by a fork': async (t) => await comesBack(t, world, next)
  }
  for (const [name, run] of Object.entries(tests)) await t.test(name, { timeout: 900_000 }, run)
}

function asked (name: string, value: string) {
  return { name, env: { REAL_KEY: value, PLAIN: 'yes' }, credentials: CREDENTIALS, network: { enabled: true, egress: { enabled: true, enforcement: { mode: 'all' as const } } } }
}

/** One request from inside the machine; what it carried when it came to the origin. */
async function carried ({ server, outside }: World, id: string): Promise<string[]> {
  const path = `/echo/${Math.random().toString(36).slice(2)}`
  await shell(server, id, `curl -sS --fail --max-time 60 https://${ORIGINS.api}${path}`)
  return (await outside.seen()).filter(({ url }) => url === path).flatMap(({ headers }) => valuesOf(headers, 'authorization'))
}

async function created (t: Test, world: World, image: string, value: string): Promise<void> {
  const { server } = world
  const { id } = await createShell(server, image, 'sleep 1000', asked('first', value))
  const instance = await waitFor(server, id, 'Running')
  t.same(instance.env, { PLAIN: 'yes', API_KEY: 'mock-API_KEY' })
  const environment = await shell(server, id, 'env')
  t.match(environment, 'API_KEY=mock-API_KEY')
  t.match(environment, /SSL_CERT_FILE=\/etc\/ssl\/certs\//)
  t.notMatch(environment, 'REAL_KEY')
  t.match(await shell(server, id, 'cat $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS'), 'BEGIN CERTIFICATE')
  t.same(await carried(world, id), [`Bearer ${value}`])
  const told = Object(await server.api.call('GET', `/instances/${id}/egress`))
  t.match(told, { mode: 'all', credentials: ['API_KEY'] })
  t.match(told.entries.filter((entry: Record<string, unknown>) => entry['host'] === ORIGINS.api), [{ protocol: 'h2', method: 'GET', port: 443, status: 200, injected: ['API_KEY'] }], 'what went through is written down')
}

async function spare (t: Test, world: World, image: string, value: string): Promise<void> {
  const { server } = world
  await eventually('a spare VM is made', async () => await figure(server, 'berth_instances_spares') === 1)
  await server.sdk.instances.delete('first')
  await createShell(server, image, 'sleep 1000', asked('web', value))
  await waitFor(server, 'web', 'Running')
  const log = (await lines(server, 'web', { source: 'hypeman' })).join('\n')
  t.match(log, 'create: from a spare VM')
  t.comment(log)
  t.same(await carried(world, 'web'), [`Bearer ${value}`])
}

async function updated (t: Test, world: World, value: string): Promise<void> {
  const { sdk } = world.server
  const before = await sdk.instances.get('web')
  t.same(await sdk.instances.update('web', { env: { REAL_KEY: value } }), before, 'nobody sees it')
  t.same(await carried(world, 'web'), [`Bearer ${value}`])
  t.match(await failureOf(sdk.instances.update('web', { env: { PLAIN: 'no' } })), { status: 400, error: { code: 'invalid_request', message: /^env.PLAIN/ } })
  t.match(await failureOf(sdk.instances.update('web', { ttl: 'soon' })), { status: 400, error: { code: 'invalid_ttl' } })
}

async function comesBack (t: Test, world: World, before: string): Promise<void> {
  const { sdk } = world.server
  await sdk.instances.standby('web')
  const value = `${before}-asleep`
  await sdk.instances.update('web', { env: { REAL_KEY: value } })
  await sdk.instances.restore('web')
  t.same(await carried(world, 'web'), [`Bearer ${value}`], 'after a restore')
  const fork = await sdk.instances.fork('web', { name: 'fork', from_running: true })
  t.same(await carried(world, fork.id), [`Bearer ${value}`], 'by a fork')
  await sdk.instances.delete(fork.id)
  t.same(await carried(world, 'web'), [`Bearer ${value}`], 'by its source')
  await sdk.instances.stop('web')
  await sdk.instances.start('web', {})
  await waitFor(world.server, 'web', 'Running')
  t.same(await carried(world, 'web'), [`Bearer ${value}`], 'after a start')
  await world.server.kill9()
  await world.server.restart()
  await waitFor(world.server, 'web', 'Running')
  t.same(await carried(world, 'web'), [`Bearer ${value}`], 'after the server was killed')
  await world.server.sdk.instances.delete('web')
}
