// Listeners beside those for 80 and 443: the proxy knows of each connection which port its guest meant.
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { ask, openPlain, openTls } from '../helpers/guest.ts'
import { freePort } from '../../helpers/free-port.ts'
import { loopback } from '../helpers/network.ts'
import { SECRET } from '../helpers/proxy.ts'
import { setStage } from '../helpers/setup.ts'

const NAME = 'api.good.test'
const MOCK = { authorization: 'Bearer mock-API_KEY' }

t.test('what a guest sends to a further port comes to its host at that port, with the credential, and nowhere else', async (t) => {
  const [secure, plain] = [await freePort(loopback(100)), await freePort(loopback(100))]
  const stage = await setStage(t, { further: [{ kind: 'https', port: secure }, { kind: 'http', port: plain }] })
  const [atSecure = 0, atPlain = 0] = stage.proxy.ports.further
  const first = await stage.origin(100, { answer: (_seen, response) => response.end('at the first port') })
  const second = await stage.origin(100, { port: secure, answer: (_seen, response) => response.end('at the second port') })
  const third = await stage.origin(100, { plain: true, port: plain, answer: (_seen, response) => response.end('in plain') })
  const over = async (port: number | undefined, host: string) => await ask(stage.proxy, stage.guest, { name: NAME, headers: { Host: host, ...MOCK } }, await openTls(stage.proxy, stage.guest, NAME, { ...port === undefined ? {} : { port } }))

  for (let round = 0; round < 2; round++) {
    t.match(await over(undefined, `${NAME}:${stage.port}`), { status: 200, text: 'at the first port' })
    t.match(await over(atSecure, `${NAME}:${secure}`), { status: 200, text: 'at the second port' })
    t.match(await over(atSecure, NAME), { status: 200, text: 'at the second port' }, 'a host without a port is the one that was dialled')
  }
  t.equal(second.seen[0]?.headers.authorization, `Bearer ${SECRET}`)
  t.match(await over(atSecure, `${NAME}:${stage.port}`), { status: 421, text: /misdirected/ }, 'a host at another port than was dialled')
  t.match(await over(undefined, `${NAME}:${secure}`), { status: 421, text: /misdirected/ })

  const socket = await openTls(stage.proxy, stage.guest, NAME, { port: atSecure, alpn: ['h2'] })
  const session = connectHttp2(`https://${NAME}:${secure}`, { createConnection: () => socket })
  const stream = session.request({ ':path': '/h2' })
  const [head] = await once(stream, 'response')
  t.same([head[':status'], await text(stream)], [200, 'at the second port'])
  session.close()

  const answer = await ask(stage.proxy, stage.guest, { path: '/', headers: { Host: `${NAME}:${plain}` } }, await openPlain(stage.proxy, stage.guest, atPlain))
  t.match(answer, { status: 200, text: 'in plain' })
  t.equal(third.seen[0]?.headers.authorization, undefined)
  t.equal(first.seen.length, 2)

  const entries = await stage.proxy.audited(`vm-${stage.guest}`, found => found.length >= 10)
  t.same(entries.map(({ port }) => port).sort((a, b) => a - b), [...Array(3).fill(stage.port), ...Array(6).fill(secure), plain].sort((a, b) => a - b))
})

t.test('a handshake that fails is noted with the port that the guest meant', async (t) => {
  const secure = await freePort(loopback(100))
  const stage = await setStage(t, { further: [{ kind: 'https', port: secure }] })
  const socket = await openPlain(stage.proxy, stage.guest, stage.proxy.ports.further[0])
  socket.on('error', () => {}).resume().end('GET / HTTP/1.1\r\n\r\n')
  const [entry] = await stage.proxy.audited(`vm-${stage.guest}`, found => found.length > 0)
  t.match(entry, { protocol: 'tls', port: secure, reason: 'handshake_failed' })
})
