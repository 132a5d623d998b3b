// `run --egress --credential` and `egress` with a real VM behind the proxy. Run by with-egress.long.test.ts in a network namespace of its own.
import t from 'tap'
import { missingPrivileges } from '../../plugins/networking/privileges.ts'
import { pushBareImage } from '../integration/egress/image.ts'
import { ORIGINS } from '../integration/egress/origins/contract.ts'
import { valuesOf } from '../integration/egress/origins/host.ts'
import { openWorld } from '../integration/egress/vm.ts'
import { berth as plain, type Ended } from './berth.ts'

const reason = missingPrivileges()
if (reason !== undefined) {
  t.plan(0, reason)
  process.exit()
}
const { server, outside, secrets } = await openWorld(t)
const image = await pushBareImage(server)
const env = { BERTH_URL: server.url, BERTH_TOKEN: server.key, REAL_KEY: secrets.REAL_KEY }
const berth = async (args: readonly string[], options: Parameters<typeof plain>[1] = {}): Promise<Ended> => await plain(args, { ...options, env })
const request = async (path: string): Promise<Ended> => await berth(['exec', '--wait', '60s', 'agent', 'curl', '-sS', '--fail', '--max-time', '60', '-o', '/dev/null', `https://${ORIGINS.api}${path}`])

t.test('the value of a variable of this shell goes into requests, and the VM does not have it', async (t) => {
  const made = await berth(['run', '-d', '--name', 'agent', '--egress', 'all', '--credential', `API_KEY=REAL_KEY:${ORIGINS.api}:Authorization:Bearer \${value}`, image, 'sh', '-c', 'while :; do sleep 1; done'])
  t.match(made, { code: 0, out: /^[a-z0-9]{24}\n$/ })
  t.match(await berth(['wait', '--state', 'Running', 'agent']), { code: 0 })
  t.match(await berth(['exec', '--wait', '60s', 'agent', 'printenv', 'API_KEY']), { code: 0, out: 'mock-API_KEY\n' })
  t.match(await berth(['exec', 'agent', 'printenv', 'REAL_KEY']), { code: 1, out: '' })
  t.match(await request('/echo/first'), { code: 0 })
  const seen = (await outside.seen()).filter(({ url }) => url === '/echo/first')
  t.strictSame(seen.map(({ headers }) => valuesOf(headers, 'authorization')), [[`Bearer ${secrets.REAL_KEY}`]])
})

t.test('what was sent is listed, with the credential and without its value, and followed until Ctrl-C', async (t) => {
  const { code, out } = await berth(['egress', 'agent'])
  t.equal(code, 0)
  t.match(out, new RegExp(`^TIME .*\\n(?:.*\\n)*.*GET ${ORIGINS.api}:443/echo/first +200 +API_KEY +-`))
  t.notMatch(out, secrets.REAL_KEY)
  // The first line that comes makes the second request, which comes by following.
  let asked: Promise<Ended> | undefined
  const followed = await berth(['egress', '-f', '--tail', '5', '--format', '{{method}} {{path}} {{status}}', 'agent'], {
    signalAfter: (out) => {
      asked ??= request('/echo/second')
      return out.includes('/echo/second')
    }
  })
  t.match(followed, { code: 130, out: /GET \/echo\/first 200\n(?:.*\n)*GET \/echo\/second 200\n/, error: '' })
  t.match(await asked, { code: 0 })
  t.match(await berth(['rm', '-f', 'agent']), { code: 0 })
})
