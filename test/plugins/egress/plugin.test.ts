// The plugin in a whole server: quick, harmless before it is used, and absent with a reason where guests have no network.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { buildApp, type App } from '../../../core/app.ts'
import { plugin } from '../../../plugins/egress/index.ts'
import { plugin as networking } from '../../../plugins/networking/index.ts'
import { namespaceOf } from '../../../plugins/networking/names.ts'
import { testFolder } from '../../helpers/folder.ts'
import { skipReason } from '../networking/world.ts'

const NO_BUILT_INS = new URL(`file:///no-built-ins-${randomBytes(4).toString('hex')}/`)

async function build (t: { teardown (work: () => unknown): void }, dataDir: string, plugins: Parameters<typeof buildApp>[1] = {}, config: object = {}): Promise<App> {
  const app = await buildApp({ server: { dataDir, listen: '127.0.0.1:0' }, log: { level: 'silent' }, ...config }, { builtIns: NO_BUILT_INS, environment: {}, ...plugins })
  t.teardown(async () => { await app.stop() })
  return app
}

t.test('a server with the plugin starts at once and makes nothing', { skip: skipReason() }, async (t) => {
  const dataDir = testFolder(t)
  const app = await build(t, dataDir, { plugins: [networking, plugin] })
  await app.start({ listen: false })
  t.match(app.plugins.list().find(({ id }) => id === 'egress'), { state: 'started' })
  t.notOk(existsSync(join(dataDir, 'egress')))
  t.notOk(existsSync(`/run/netns/${namespaceOf(dataDir)}`))
})

t.test('without a network for guests it is skipped, and says so', async (t) => {
  const app = await build(t, testFolder(t), { plugins: [plugin] })
  await app.start({ listen: false })
  t.match(app.plugins.list().find(({ id }) => id === 'egress'), { state: 'skipped', reason: /the plugin networking does not run/ })
})

t.test('settings that the proxy could not use stop the start, not the first guest', { skip: skipReason() }, async (t) => {
  for (const [config, message] of [
    [{ deny: ['10.0.0.0/40'] }, /egress\.config\.deny\.0: 10\.0\.0\.0\/40 is not an address range/],
    [{ allowPrivate: ['10.0.0.0/8', '1.2.3'] }, /egress\.config\.allowPrivate\.1/],
    [{ roots: ['/no/such/file.pem'] }, /egress\.config\.roots\.0: \/no\/such\/file\.pem cannot be read/],
    [{ roots: ['/etc/passwd'] }, /holds no certificate/]
  ] as const) {
    const app = await build(t, testFolder(t), { plugins: [networking, plugin] }, { plugins: { egress: { config } } })
    await t.rejects(app.start({ listen: false }), { message })
  }
})

t.test('a proxy that systemd runs needs the place of its socket', { skip: skipReason() }, async (t) => {
  const app = await build(t, testFolder(t), { plugins: [networking, plugin] }, { plugins: { egress: { config: { proxy: { manage: false } } } } })
  await t.rejects(app.start({ listen: false }), { message: /plugins\.egress\.config\.proxy\.controlSocket/ })
})

t.test('settings that only a proxy of this server\'s own has are refused where systemd runs it, each with the place where it belongs', { skip: skipReason() }, async (t) => {
  const proxy = { manage: false, controlSocket: '/run/berth-egress/control.sock' }
  const config = { proxy: { ...proxy, workers: 3, user: 'nobody', startTimeout: '1m' }, allowPrivate: ['10.1.0.0/16'], roots: ['/etc/ssl/certs/ca-certificates.crt'], limits: { connections: 5 }, audit: { maxFileSize: '1MB' } }
  const app = await build(t, testFolder(t), { plugins: [networking, plugin] }, { plugins: { egress: { config } } })
  const refused = await app.start({ listen: false }).then(() => '', String)
  for (const key of ['proxy.workers', 'proxy.user', 'proxy.startTimeout', 'allowPrivate', 'roots', 'limits.connections', 'audit.maxFileSize']) t.match(refused, `plugins.egress.config.${key}: `, key)
  t.match(refused, /\/etc\/berth\/egress\.yaml/)
  t.notMatch(refused, /limits\.requests|audit\.files/)
  const other = await build(t, testFolder(t), { plugins: [networking, plugin] }, { plugins: { egress: { config: { proxy, deny: ['203.0.113.0/24'], ports: { https: [443, 8443] }, passTraceparent: true } } } })
  await other.start({ listen: false })
  t.match(other.plugins.list().find(({ id }) => id === 'egress'), { state: 'started' }, 'what is in force in both ways may be set')
})
