// How much of the audit log is shown.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t from 'tap'
import { berth } from '../berth.ts'

t.test('--tail is how many at most: none are none, and less than none is refused', async (t) => {
  const entries = [1, 2, 3].map((seq) => ({ seq, time: '2026-01-01T00:00:00.000Z', protocol: 'https', host: `h${seq}`, port: 443, injected: [] }))
  const server = createServer((_request, reply) => { reply.end(JSON.stringify({ mode: 'all', next: 3, entries })) }).listen(0, '127.0.0.1')
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  const env = { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, BERTH_TOKEN: 'key' }
  for (const [tail, expected] of [['0', ''], ['2', 'h2\nh3\n'], ['100', 'h1\nh2\nh3\n']] as const) t.match(await berth(['egress', '-n', tail, '--format', '{{host}}', 'web'], { env }), { code: 0, out: expected, error: '' }, tail)
  t.match(await berth(['egress', '-n', '-3', 'web'], { env }), { code: 2, out: '', error: /--tail: -3 is less than 0/ })
})
