import t from 'tap'
import { once } from 'node:events'
import { connect as connectHttp2 } from 'node:http2'
import { createTestAuthority } from './helpers/authority.ts'
import { ask, exchangeBytes, openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { SECRET, vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'

t.test('a request to a matching host carries the real header, and the guest sees nothing of it', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const answer = await ask(stage.proxy, stage.guest, { name: 'api.good.test', path: '/v1?x=1', headers: { Host: stage.host('api.good.test'), authorization: 'Bearer mock-API_KEY' } })
  t.equal(answer.status, 200)
  t.equal(answer.text, 'hello from the origin')
  t.equal(origin.seen[0]?.headers.authorization, `Bearer ${SECRET}`)
  const [entry] = await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 0)
  t.match(entry, { seq: 1, vm: `vm-${stage.guest}`, protocol: 'http/1.1', host: 'api.good.test', port: stage.port, method: 'GET', path: '/v1', status: 200, injected: ['API_KEY'], bytesOut: 21 })
})

t.test('A1 and A2: a Host that is not the name of the TLS handshake is answered 421, nothing is dialled and no secret leaves', async (t) => {
  const stage = await setStage(t)
  const good = await stage.origin(100)
  const evil = await stage.origin(101, { hosts: ['evil.test'] })
  for (const [name, host] of [['api.good.test', 'evil.test'], ['evil.test', 'api.good.test'], ['evil.test', 'API.good.test.']] as const) {
    const answer = await ask(stage.proxy, stage.guest, { name, headers: { Host: stage.host(host) } })
    t.equal(answer.status, 421, `${name} with ${host}`)
    t.match(answer.text, /misdirected/)
  }
  t.equal(good.connections() + evil.connections(), 0)
  t.same(stage.names.asked, [])
  t.match((await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 2)).map(entry => entry.reason), ['misdirected', 'misdirected', 'misdirected'])
})

t.test('A3: on HTTP/2 another :authority, or one that differs from host, ends that stream alone', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const socket = await openTls(stage.proxy, stage.guest, 'api.good.test', { alpn: ['h2'] })
  const session = connectHttp2('https://api.good.test', { createConnection: () => socket })
  session.on('error', error => t.fail(error.message))
  const status = async (headers: Record<string, string>) => {
    const stream = session.request({ ':path': '/', ...headers })
    const [answer] = await once(stream, 'response')
    stream.resume()
    await once(stream, 'close')
    return answer[':status']
  }
  t.equal(await status({ ':authority': stage.host('evil.test') }), 421)
  t.equal(await status({ ':authority': stage.host('api.good.test'), host: 'evil.test' }), 421)
  t.equal(origin.connections(), 0)
  t.equal(await status({ ':authority': stage.host('api.good.test') }), 200)
  t.equal(origin.seen[0]?.headers.authorization, `Bearer ${SECRET}`)
  session.destroy()
})

t.test('A6: the address that the guest connected to is never dialled, only what the host itself resolves', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const attacker = await stage.origin(101, { hosts: ['attacker.test'] })
  // The redirect has thrown the guest's destination away: the proxy knows nothing but the name.
  t.equal((await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })).status, 200)
  t.equal(origin.connections(), 1)
  t.equal(attacker.connections(), 0)
})

t.test('A7: an origin whose certificate is self-signed, expired, of another name or of an unknown root gets no byte of the request', async (t) => {
  const stage = await setStage(t)
  const other = createTestAuthority('Nobody trusts this')
  const cases = [
    ['expired.good.test', 110, stage.authority.issue('expired.good.test', -0.5)],
    ['wrong.good.test', 111, stage.authority.issue('another.good.test')],
    ['unknown.good.test', 112, other.issue('unknown.good.test')]
  ] as const
  await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: ['*.good.test'] }]))
  for (const [name, last, certificate] of cases) {
    const origin = await stage.origin(last, { hosts: [name], certificate })
    const answer = await ask(stage.proxy, stage.guest, { name, headers: { Host: stage.host(name) } })
    t.equal(answer.status, 502, name)
    t.match(answer.text, /upstream_certificate/)
    t.equal(origin.bytes(), '')
  }
})

t.test('A8: a target with a host of its own is refused', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  for (const target of ['http://evil.test/', 'https://evil.test/', `https://${stage.host('api.good.test')}/`, 'evil.test:443']) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    const answer = await exchangeBytes(socket, `GET ${target} HTTP/1.1\r\nHost: ${stage.host('api.good.test')}\r\n\r\n`)
    t.match(answer, /^HTTP\/1\.1 400 /, target)
  }
  t.equal(origin.connections(), 0)
})

t.test('A9: two Host lines, none, an empty one, or one with anything but a name is refused', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const good = stage.host('api.good.test')
  const headers = [`Host: ${good}\r\nHost: ${good}\r\n`, '', 'Host:\r\n', `Host: user@${good}\r\n`, `Host: api.good .test:${stage.port}\r\n`, `Host: ${good},evil.test\r\n`, 'Host: api.good.test%00\r\n', 'Host: api..good.test\r\n']
  for (const lines of headers) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    const answer = await exchangeBytes(socket, `GET / HTTP/1.1\r\n${lines}\r\n`)
    t.match(answer, /^HTTP\/1\.1 400 /, JSON.stringify(lines))
  }
  t.equal(origin.connections(), 0)
})

t.test('A11: a wildcard means exactly one more label', async (t) => {
  const stage = await setStage(t)
  await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: ['*.good.test'] }]))
  const names = ['a.good.test', 'good.test', 'a.b.good.test', 'evilgood.test', 'a.good.test.evil.test']
  const origins = await Promise.all(names.map(async (name, index) => await stage.origin(100 + index, { hosts: [name] })))
  for (const [index, name] of names.entries()) {
    t.equal((await ask(stage.proxy, stage.guest, { name, headers: { Host: stage.host(name) } })).status, 200, name)
    t.equal(origins[index]?.bytes().includes(SECRET), index === 0, name)
  }
})

t.test('A11 and A13: patterns that are none, and two rules that set one header for hosts of the same precision, are refused with their place', async (t) => {
  const stage = await setStage(t)
  const refused = async (rules: Parameters<typeof vmPolicy>[1]) => {
    const answer = await stage.proxy.call('PUT', '/policy', { revision: 1000, vms: [vmPolicy(stage.guest, rules)] })
    t.equal(answer.status, 400)
    return String(JSON.parse(answer.body).message)
  }
  for (const host of ['*', '*.com', 'a.*.b', 'https://x.test', 'x.test:443', 'bücher.test', '*.*.good.test', '.good.test', 'good.test.', '', '1.2.3.4', 'a b.test', '*good.test']) {
    t.match(await refused([{ hosts: [host] }]), /^vms\[0\]\.rules\[0\]\.hosts\[0\]: /, host)
  }
  t.match(await refused([{}, { credential: 'B' }]), /^vms\[0\]\.rules\[1\]\.header: /)
  t.match(await refused([{ hosts: ['*.good.test'] }, { credential: 'B', header: 'authorization', hosts: ['*.good.test'] }]), /^vms\[0\]\.rules\[1\]\.header: /)
  t.match(await refused([{ header: 'X-Key', hosts: undefined }, { credential: 'B', header: 'x_key', hosts: undefined }]), /^vms\[0\]\.rules\[1\]\.header: /)
  t.match(JSON.parse((await stage.proxy.call('GET', '/policy')).body), { revision: 1, vms: 1 }, 'the old revision stays')
})

t.test('A12: a Host with other letters than ASCII is refused, never compared as it is', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  for (const host of ['api.good\xe3\x80\x82test', '\xef\xbd\x81pi.good.test', 'api.good.t\xc3\xa9st']) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test')
    t.match(await exchangeBytes(socket, `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`), /^HTTP\/1\.1 400 /)
  }
  t.equal(origin.connections(), 0)
  t.equal((await ask(stage.proxy, stage.guest, { name: 'API.Good.Test', headers: { Host: `Api.GOOD.test.:${stage.port}` } })).status, 200)
})

t.test('another VM has its own policy, and one without rules for a host goes there as it is', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  const second = loopback(11)
  await stage.proxy.policy(vmPolicy(stage.guest, [{}]), vmPolicy(second))
  await ask(stage.proxy, second, { name: 'api.good.test', headers: { Host: stage.host('api.good.test'), Authorization: 'Bearer mock-API_KEY' } })
  t.equal(origin.seen[0]?.headers.authorization, 'Bearer mock-API_KEY')
})
