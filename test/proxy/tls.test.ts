import t from 'tap'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { openAuthority } from '../../proxy/tls/authority.ts'
import { ContextCache } from '../../proxy/tls/context-cache.ts'
import { Counters } from '../../proxy/log/counters.ts'
import { testFolder } from '../helpers/folder.ts'
import { ask, openPlain, openTls } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { setStage } from './helpers/setup.ts'

const DAY_MS = 24 * 60 * 60 * 1000

t.test('a guest that takes either is given AES-128, and one that insists on AES-256 gets that', async (t) => {
  const stage = await setStage(t)
  await stage.origin(100, {})
  for (const [ciphers, expected] of [[undefined, 'TLS_AES_128_GCM_SHA256'], ['TLS_AES_256_GCM_SHA384', 'TLS_AES_256_GCM_SHA384']] as const) {
    const socket = await openTls(stage.proxy, stage.guest, 'api.good.test', { ciphers })
    t.equal(socket.getCipher().name, expected)
    socket.destroy()
  }
})

t.test('P16 and P23: certificates are what strict clients want, and valid for a guest whose clock is a day behind', async (t) => {
  const authority = await openAuthority(join(testFolder(t), 'ca'))
  const ca = new X509Certificate(authority.certificatePem)
  t.ok(ca.ca)
  t.ok(ca.verify(ca.publicKey))
  t.match(ca.subject, /^O=Berth\nCN=Berth egress [0-9a-f]{12}$/)
  const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.test`
  const serials = new Set<string>()
  for (const host of ['api.good.test', long]) {
    const leaf = new X509Certificate(authority.issue(host).certificatePem)
    serials.add(leaf.serialNumber)
    t.ok(leaf.verify(ca.publicKey))
    t.ok(leaf.checkIssued(ca), 'the key identifiers agree')
    t.equal(leaf.checkHost(host), host)
    t.equal(leaf.subjectAltName, `DNS:${host}`)
    t.equal(leaf.subject, host === long ? 'O=Berth' : `CN=${host}`, 'a common name has at most 64 characters')
    t.same(leaf.keyUsage, ['1.3.6.1.5.5.7.3.1'])
    t.notOk(leaf.ca)
    t.ok(Date.parse(leaf.validFrom) < Date.now() - 0.99 * DAY_MS)
    t.ok(Date.parse(leaf.validTo) < Date.now() + 99 * DAY_MS)
    t.equal(leaf.publicKey.asymmetricKeyType, 'ec')
  }
  t.equal(serials.size, 2)
})

t.test('A55: certificates that are kept are bounded for one VM and for all, and the largest gives way', async (t) => {
  const authority = await openAuthority(join(testFolder(t), 'ca'))
  const cache = new ContextCache(authority, { perVm: 4, total: 6 }, new Counters())
  const [quiet, loud] = [{}, {}]
  cache.create(quiet, 'one.test')
  for (let count = 0; count < 10; count++) cache.create(loud, `n${count}.test`)
  t.equal(cache.size, 5)
  t.ok(cache.find(quiet, 'one.test'))
  t.ok(cache.find(loud, 'n9.test'))
  t.notOk(cache.find(loud, 'n0.test'))
  t.notOk(cache.find(loud, 'one.test'), 'nothing is shared')
  const third = {}
  for (let count = 0; count < 3; count++) cache.create(third, `t${count}.test`)
  t.equal(cache.size, 6)
  t.ok(cache.find(quiet, 'one.test'))
  cache.forget(loud)
  cache.forget(third)
  cache.forget(quiet)
  t.equal(cache.size, 0)
})

t.test('a certificate that was made while the clock was ahead is used no more once it is right', async (t) => {
  const cache = new ContextCache(await openAuthority(join(testFolder(t), 'ca')), { perVm: 4, total: 6 }, new Counters())
  const vm = {}
  const { now } = Date
  t.teardown(() => { Date.now = now })
  const set = (ms: number): void => { Date.now = () => now() + ms }
  for (const [aheadMs, expected] of [[30_000, true], [40 * DAY_MS, false], [2 * 60 * 60 * 1000, false]] as const) {
    set(aheadMs)
    const made = cache.create(vm, 'api.good.test')
    t.equal(cache.find(vm, 'api.good.test'), made)
    set(0)
    t.equal(cache.find(vm, 'api.good.test') === made, expected, `${aheadMs} ms ahead`)
    cache.forget(vm)
  }
  t.equal(cache.size, 0)
  const made = cache.create(vm, 'api.good.test')
  set(59 * 60 * 1000)
  t.equal(cache.find(vm, 'api.good.test'), made)
  set(61 * 60 * 1000)
  t.notOk(cache.find(vm, 'api.good.test'), 'nor after an hour')
  t.equal(cache.size, 0)
})

t.test('P17: a client that does not trust the authority fails by itself, and the log says with which host', async (t) => {
  const stage = await setStage(t)
  const socket = connectTls({ socket: await openPlain(stage.proxy, stage.guest, stage.proxy.ports.https), servername: 'api.good.test', maxVersion: 'TLSv1.2' })
  const [error] = await once(socket, 'error')
  t.match(error.code, /UNABLE_TO|SELF_SIGNED/)
  const [entry] = await stage.proxy.audited(`vm-${stage.guest}`, entries => entries.length > 0)
  t.match(entry, { protocol: 'tls', host: 'api.good.test', reason: 'no_request' })
})

t.test('P24: an origin that wants a certificate of its client is a 502', async (t) => {
  const stage = await setStage(t)
  const origin = createServer({ ...stage.authority.issue('mutual.test'), requestCert: true, rejectUnauthorized: true, ca: stage.authority.certificatePem }, (_request, response) => { response.end('never') })
  origin.listen(stage.port, loopback(120))
  await once(origin, 'listening')
  t.teardown(() => origin.close())
  stage.names.records.set('mutual.test', [loopback(120)])
  t.equal((await ask(stage.proxy, stage.guest, { name: 'mutual.test', headers: { host: stage.host('mutual.test') } })).status, 502)
})

t.test('a client that speaks neither protocol that is offered is turned away in the handshake', async (t) => {
  const stage = await setStage(t)
  await t.rejects(openTls(stage.proxy, stage.guest, 'api.good.test', { alpn: ['spdy/1'] }))
  t.equal((await stage.proxy.call('GET', '/health')).status, 200)
})
