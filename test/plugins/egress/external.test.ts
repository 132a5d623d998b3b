// A proxy that somebody else keeps, as systemd does: this server starts none, tells it everything as soon as it answers, and leaves it alone at its end.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pino } from 'pino'
import t from 'tap'
import { ControlClient } from '../../../plugins/egress/control/client.ts'
import { PROGRAM } from '../../../plugins/egress/process/plan.ts'
import { ExternalProxy } from '../../../plugins/egress/process/external-proxy.ts'
import type { EgressVerdict } from '../../../plugins/instances/egress/contract.ts'
import type { PolicyChange, PolicyRevision } from '../../../proxy/contract/control.ts'
import { skipReason } from '../networking/world.ts'
import { setStage, specOf, until, type EgressStage } from './stage.ts'

const externalOf = ({ network, world }: EgressStage): ExternalProxy => new ExternalProxy({ network, commands: world.commands, log: pino({ level: 'silent' }) })

/** Notes what the proxy has taken. */
class NotingClient extends ControlClient {
  denied: readonly string[] = []

  override async put (revision: PolicyRevision): Promise<void> {
    await super.put(revision)
    this.denied = revision.denied ?? []
  }

  override async patch (change: PolicyChange): Promise<void> {
    await super.patch(change)
    this.denied = change.denied ?? this.denied
  }
}

t.test('it is told its policies whenever it comes back, and outlives the server', { skip: skipReason() }, async (t) => {
  const stage = await setStage(t)
  await stage.network.proxyPlace()
  const folder = join(stage.world.folder, 'external')
  await mkdir(folder)
  const config = join(folder, 'egress.json')
  const socket = join(folder, 'control.sock')
  await writeFile(config, JSON.stringify({ listen: { http: '10.100.0.1:18080', https: '10.100.0.1:18443', control: socket }, allowPrivate: ['10.9.0.0/16'], deny: ['198.51.100.0/24'], ca: { directory: join(folder, 'ca') }, audit: { file: join(folder, 'requests.jsonl') } }))
  const start = (): ChildProcess => spawn('setpriv', ['--pdeathsig', 'KILL', 'nsenter', `--net=/run/netns/${stage.world.namespace}`, process.execPath, PROGRAM, '--config', config], { stdio: 'ignore' })
  const client = new NotingClient(socket)
  const server = await stage.server({ config: { deny: ['203.0.113.0/24'] }, client, proxy: () => externalOf(stage) })
  const tried = async (host: string): Promise<EgressVerdict> => await server.egress.tryPolicy({ mode: 'all', credentials: {}, url: `https://${host}/` })
  await t.rejects(tried('10.9.0.1'), { code: 'egress_unavailable' }, 'only the proxy knows what its own configuration allows')
  await t.rejects(server.egress.enforce('a', '10.100.0.2', specOf(server)), { code: 'egress_unavailable', message: /control\.sock|ENOENT/ })
  let proxy = start()
  t.teardown(() => { proxy.kill('SIGKILL') })
  await until(async () => (await client.state()).vms === 0)
  await server.egress.enforce('a', '10.100.0.2', specOf(server))
  t.equal((await client.state()).vms, 1)
  t.ok(client.denied.includes('203.0.113.0/24'), 'what this server\'s configuration denies is in force')
  t.match(await tried('10.9.0.1'), { decision: 'allow' })
  for (const host of ['198.51.100.7', '203.0.113.7']) t.match(await tried(host), { decision: 'refuse', reason: 'own_address' }, host)
  t.match(await tried('10.8.0.1'), { decision: 'refuse', reason: 'private_address' })
  for (let round = 0; round < 2; round++) {
    proxy.kill('SIGKILL')
    await once(proxy, 'exit')
    proxy = start()
    await until(async () => (await client.state()).vms === 1)
  }
  await server.stop()
  t.equal(proxy.exitCode, null)
  t.equal((await client.state()).vms, 1)
  const next = await stage.server({ client, proxy: () => externalOf(stage) })
  await until(async () => (await client.state()).vms === 0)
  await next.stop()
})

t.test('one that listens where no guest is keeps a VM from its start, and says which namespace it must be in', { skip: skipReason() }, async (t) => {
  const stage = await setStage(t)
  const { namespace } = await stage.network.proxyPlace()
  const folder = join(stage.world.folder, 'elsewhere')
  await mkdir(folder)
  const config = join(folder, 'egress.json')
  const socket = join(folder, 'control.sock')
  await writeFile(config, JSON.stringify({ listen: { http: '127.0.0.1:0', https: '127.0.0.1:0', control: socket }, ca: { directory: join(folder, 'ca') }, audit: { file: join(folder, 'requests.jsonl') } }))
  const proxy = spawn('setpriv', ['--pdeathsig', 'KILL', process.execPath, PROGRAM, '--config', config], { stdio: 'ignore' })
  t.teardown(() => { proxy.kill('SIGKILL') })
  const client = new ControlClient(socket)
  const server = await stage.server({ client, proxy: () => externalOf(stage) })
  await until(async () => (await client.state()).vms === 0)
  await t.rejects(server.egress.enforce('a', '10.100.0.2', specOf(server)), { code: 'egress_unavailable', message: new RegExp(`nobody listens at 10\\.100\\.0\\.1:18080, 10\\.100\\.0\\.1:18443 in ${namespace}.*plugins\\.networking\\.config\\.namespace`) })
  t.equal(server.egress.size, 0)
  await until(async () => (await client.state()).vms === 0)
})
