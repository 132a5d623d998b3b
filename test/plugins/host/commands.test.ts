// `berth host`, and what `berth doctor` tells of a server's host.
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { berth as plain } from '../../cli/berth.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { startHost } from './app.ts'

t.test('people read of the host what the API tells, and no text of it moves their cursor', async (t) => {
  const { app: { log }, url, kept } = await startHost(t)
  const berth = async (...args: string[]): ReturnType<typeof plain> => await plain(args, { env: { BERTH_URL: url, BERTH_TOKEN: ADMIN_KEY } })
  t.match(await berth('host', 'checks'), { code: 0, out: /^ok +Node\.js +v\d/m })
  const identity = readIdentity(process.pid)
  if (identity === undefined) return t.fail('this process does not run')
  kept.push({ name: 'this test', plugin: 'keeper', state: 'running', restarts: 3, identity, lastEnd: { reason: 'has ended (SIGKILL)', at: Date.now() } })
  const { out } = await berth('host', 'processes')
  t.match(out, new RegExp(`^this test +keeper +running +${process.pid} .* 3 .*has ended \\(SIGKILL\\), \\d+ seconds? ago *$`, 'm'))
  log.error({ name: '\u001b[2Jweb', plugin: 'x' }, 'hostile\nline')
  log.info('not asked for')
  const { out: lines } = await berth('host', 'log', '--level', 'error')
  t.match(lines, /^\S+Z error \[x\] hostile\\nline name="\\u001b\[2Jweb"\n$/)
  t.match(await berth('host', 'log', '--level', 'loud'), { code: 2 })
})

t.test('the doctor tells what a server finds of its host beside what is found here, once', async (t) => {
  const { url, dataDir } = await startHost(t)
  await chmod(join(dataDir, 'keys/admin.key'), 0o644)
  const { out, code } = await plain(['doctor', '--json'], { env: { BERTH_URL: url, BERTH_TOKEN: ADMIN_KEY } })
  const findings = JSON.parse(out) as { readonly subject: string, readonly verdict: string, readonly found: string, readonly remedy?: string }[]
  t.match(findings.find(({ subject }) => subject === 'keys there'), { verdict: 'failed', found: `${dataDir}/keys/admin.key (0644)`, remedy: /^chmod 600 / })
  t.equal(code, 1)
  t.match(findings.find(({ subject }) => subject === 'room there'), { verdict: String })
  t.same(findings.filter(({ subject }) => ['Node.js there', 'database there', 'plugins there'].includes(subject)), [], 'what is the same is said once')
})
