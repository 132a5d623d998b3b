// A build behind the proxy, with an operator's own image of builders: its steps reach what is outside and trust the authority, without a trace of it in the image.
// Run by egress.long.test.ts in a network namespace of its own.
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { ORIGINS } from '../egress/origins/contract.ts'
import { openWorld, type World } from '../egress/vm.ts'
import { createShell, runToEnd } from '../../helpers/machine.ts'
import { BUILDER, pushImages } from './egress-images.ts'
import { archive, follow, submit, type Built } from './scene.ts'

const URL_OF_OTHER = `https://${ORIGINS.other}/echo`
const FETCH = `RUN curl --fail --silent --show-error --max-time 60 ${URL_OF_OTHER} > /fetched && echo fetched\n`

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  t.setTimeout(1_400_000)
  const world = await openWorld(t, { builds: { config: { builderImage: BUILDER, vcpus: 1, memory: '1GB', disk: '4GB' } } })
  await pushImages(world.server)
  await t.test('with egress_mode all, a step fetches through the proxy and trusts it, and the image knows nothing of it', { timeout: 900_000 }, async (t) => await mediated(t, world))
  await t.test('without network, a step fetches nothing', { timeout: 900_000 }, async (t) => await alone(t, world))
}

async function build ({ server }: World, dockerfile: string, fields: Readonly<Record<string, string>>): Promise<Built> {
  return await follow(server, await submit(server, archive({ Dockerfile: dockerfile }), fields))
}

async function mediated (t: Test, world: World): Promise<void> {
  await world.outside.forget()
  const done = await build(world, `FROM bases/curl\n${FETCH}`, { egress_mode: 'all' })
  t.equal(done.status, 'ready', done.error ?? '')
  t.ok(done.lines.includes('fetched'), done.lines.join('\n'))
  t.match((await world.outside.seen()).filter(({ origin }) => origin === 'other'), [{ secure: true, method: 'GET', url: '/echo' }])
  const { server } = world
  const { output } = await runToEnd(server, await createShell(server, done.image_ref ?? '', 'env; ls -A /dev | grep crt; ls -AR /etc/ssl /usr/local/share /run; grep -rl "BEGIN CERTIFICATE" /etc /usr/local /run; true', { network: { enabled: false } }))
  t.notMatch(output.join('\n'), /SSL_CERT|CURL_CA|berth-egress|berth-ca|\/etc\/.*pem/)
  t.match(output.join('\n'), /PATH=/)
}

async function alone (t: Test, world: World): Promise<void> {
  await world.outside.forget()
  const failed = await build(world, `FROM bases/curl\n${FETCH}`, { network_mode: 'isolated' })
  t.equal(failed.status, 'failed')
  t.match(failed.error, /Could not resolve host|Failed to connect|Couldn't connect/)
  t.same(await world.outside.seen(), [])
}
