// The plugin in a whole server: quick, harmless before it is used, and absent with a reason where it cannot work.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { buildApp } from '../../../core/app.ts'
import { plugin } from '../../../plugins/networking/index.ts'
import { namespaceOf } from '../../../plugins/networking/names.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { testFolder } from '../../helpers/folder.ts'
import { skipReason } from './world.ts'

const NO_BUILT_INS = new URL(`file:///no-built-ins-${randomBytes(4).toString('hex')}/`)

t.test('a server with the plugin starts at once and makes nothing', { skip: skipReason() }, async (t) => {
  const dataDir = testFolder(t)
  const app = await buildApp({ server: { dataDir, listen: '127.0.0.1:0' }, log: { level: 'silent' } }, { plugins: [plugin], builtIns: NO_BUILT_INS, environment: {} })
  t.teardown(async () => { await app.stop() })
  await app.start({ listen: false })
  const report = app.plugins.list().find(({ id }) => id === 'networking')
  t.match(report, { state: 'started' })
  t.notOk(existsSync(`/run/netns/${namespaceOf(dataDir)}`))
})

t.test('without root it is skipped with the reason', { skip: process.getuid?.() === 0 ? false : 'needs root to give it up' }, async (t) => {
  const module = new URL('../../../plugins/networking/privileges.js', import.meta.url)
  const commands = createHostCommands()
  const said = async (...drop: readonly string[]): Promise<string> => (await commands.run('setpriv', [...drop, process.execPath, '--input-type=module', '-e', `import { missingPrivileges } from '${module.href}'; console.log(missingPrivileges())`])).stdout.trim()
  t.match(await said('--bounding-set=-net_admin', '--inh-caps=-net_admin'), /^networks for guests need CAP_NET_ADMIN/)
  const folder = await commands.run('setpriv', ['--reuid=65534', '--clear-groups', 'test', '-r', fileURLToPath(module)]).then(() => true, () => false)
  if (folder) t.equal(await said('--reuid=65534', '--clear-groups'), 'networks for guests need root')
})
