// Real machines that are looked after: their ports are probed, an unhealthy one is started again, and one that nobody is connected to goes to standby, also by a server that was killed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { shell } from '../helpers/counter.ts'
import { eventually } from '../helpers/eventually.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, waitFor } from '../helpers/machine.ts'
import { ownNetwork } from '../helpers/own-network.ts'
import { startTestServer, type TestServer } from '../helpers/server.ts'

const SERVING = 'mkdir -p /www; echo yes > /www/ready; nc -ll -p 7 -e /bin/cat & httpd -f -p 8080 -h /www'
const OFTEN = { interval: '1s', start_period: '0s' } as const

const { namespace, cidr } = ownNetwork()

const health = async (server: TestServer, id: string): Promise<string | undefined> => (await server.sdk.instances.get(id)).health_status?.status
const becomes = async (server: TestServer, id: string, status: string): Promise<void> => { await eventually(`the health is ${status}`, async () => await health(server, id) === status) }

async function main (): Promise<void> {
  t.teardown(async () => {
    // Only after a failure: a server that stops in order removes it.
    if (existsSync(`/run/netns/${namespace}`)) await createHostCommands().run('ip', ['netns', 'delete', namespace])
  })
  const server = await startTestServer(t, { plugins: { networking: { config: { uplink: 'none', cidr, namespace } } } })
  const image = await push(server, await busyboxImage(), 'life/busybox:latest')

  await t.test('a machine without a network is probed at its port', { timeout: 900_000 }, async (t) => {
    const { id } = await createShell(server, image, SERVING, { network: { enabled: false }, health_check: { type: 'tcp', tcp: { port: 7 }, ...OFTEN } })
    await becomes(server, id, 'healthy')
    await server.sdk.instances.update(id, { health_check: { type: 'tcp', tcp: { port: 9 }, failure_threshold: 1, ...OFTEN } })
    await becomes(server, id, 'unhealthy')
    t.match((await server.sdk.instances.get(id)).health_status, { last_error: 'nobody listens on port 9' })
    await server.sdk.instances.delete(id)
  })

  let id = ''
  await t.test('one that answers as it should not is started again', { timeout: 900_000 }, async (t) => {
    id = (await createShell(server, image, SERVING, {
      health_check: { type: 'http', http: { port: 8080, path: '/ready' }, timeout: '10s', failure_threshold: 2, ...OFTEN },
      restart_policy: { policy: 'always', backoff: '1s' }
    })).id
    await becomes(server, id, 'healthy')
    await shell(server, id, 'rm /www/ready')
    await eventually('it was started again', async () => (await server.sdk.instances.get(id)).restart_status?.attempts === 1)
    await becomes(server, id, 'healthy')
    t.match(await server.sdk.instances.get(id), { state: 'Running', restart_status: { last_reason: 'health_check_failed' } })
  })

  await t.test('one that somebody is connected to stays awake, also with a server that was killed meanwhile, and sleeps once nobody is', { timeout: 900_000 }, async (t) => {
    const ip = (await server.sdk.instances.get(id)).network?.ip ?? ''
    const caller = spawn('nsenter', [`--net=/run/netns/${namespace}`, 'busybox', 'nc', ip, '7'], { stdio: ['pipe', 'pipe', 'inherit'] })
    const closed = once(caller, 'close')
    caller.stdin.write('hello\n')
    t.equal(String((await once(caller.stdout, 'data'))[0]), 'hello\n')
    await server.sdk.instances.update(id, { auto_standby: { enabled: true, idle_timeout: '2s' } })
    t.match(await server.sdk.instances.autoStandby.status(id), { eligible: true, status: 'active', active_inbound_connections: 1 })
    await server.kill9()
    await server.restart()
    await waitFor(server, id, 'Running')
    await delay(8000)
    t.match(await server.sdk.instances.autoStandby.status(id), { status: 'active', active_inbound_connections: 1 })
    caller.stdin.write('again\n')
    t.equal(String((await once(caller.stdout, 'data'))[0]), 'again\n')
    caller.kill()
    await closed
    await eventually('it sleeps', async () => (await server.sdk.instances.get(id)).state === 'Standby')
    await server.sdk.instances.update(id, { auto_standby: { enabled: true, idle_timeout: '1h' } })
    await server.sdk.instances.restore(id)
    await becomes(server, id, 'healthy')
    t.match(await server.sdk.instances.autoStandby.hold(id), { status: 'idle_countdown', hold_until: String })
    await server.sdk.instances.delete(id)
  })
}

t.setTimeout(1_200_000)
const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)
