import t from 'tap'
import { connect } from 'node:net'
import { once } from 'node:events'
import { ask } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { SECRET, vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'
import { embeddedV4, isMetadata, isPrivate } from '../../proxy/contract/ranges.ts'

const PRIVATE = ['127.0.0.1', '127.255.255.254', '0.0.0.0', '0.1.2.3', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', '100.64.0.1', '169.254.1.1', '192.0.0.8',
  '198.18.0.1', '198.19.255.255', '192.0.2.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1', '255.255.255.255', '::', '::1', 'fe80::1', 'fc00::1', 'fd12::1', 'ff02::1',
  '2001:db8::1', '3fff::1', '100::1', 'fec0::1']
const EMBEDDED = ['::ffff:10.0.0.1', '::ffff:7f00:1', '::127.0.0.1', '64:ff9b::a00:1', '64:ff9b:1::1', '2002:7f00:1::1', '2002:a00:1::', '2001::1', '2001:0:53aa::1']

t.test('A14: every range that is no public service is known as private', async (t) => {
  for (const address of PRIVATE) t.ok(isPrivate(address), address)
  for (const address of ['1.1.1.1', '8.8.8.8', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450::1']) t.notOk(isPrivate(address), address)
})

t.test('A15: an IPv6 address that stands for an IPv4 one is judged as that one', async (t) => {
  for (const address of EMBEDDED) t.ok(isPrivate(address), address)
  t.equal(embeddedV4('::ffff:1.2.3.4'), '1.2.3.4')
  t.equal(embeddedV4('64:ff9b::808:808'), '8.8.8.8')
  t.notOk(isPrivate('64:ff9b::808:808'))
  t.ok(isMetadata('::ffff:169.254.169.254'))
  t.ok(isMetadata('64:ff9b::a9fe:a9fe'))
  t.ok(isMetadata('2002:a9fe:a9fe::1'))
})

t.test('A14 and A15: a host that resolves there is answered 403, and nothing is dialled', async (t) => {
  const stage = await setStage(t, { ipv6: true, limits: { connectMs: 500 } })
  for (const address of ['10.0.0.1', '127.9.9.9', '169.254.1.1', '100.64.0.1', '::1', '::ffff:10.0.0.1', '64:ff9b::a00:1', 'fd00::1']) {
    const name = `h${address.replaceAll(/[.:]/g, '-')}x.private.test`
    stage.names.records.set(name, [address])
    const answer = await ask(stage.proxy, stage.guest, { name, headers: { Host: stage.host(name) } })
    t.equal(answer.status, 403, address)
    t.match(answer.text, address === '::1' ? /own_address/ : /private_address/)
  }
  const plain = await ask(stage.proxy, stage.guest, { headers: { Host: `10.0.0.1:${stage.plainPort}` } })
  t.equal(plain.status, 403, 'an address in Host goes through the same check')
  for (const host of ['0x7f.0.0.1', '2130706433', '127.1', '010.0.0.1', '[fe80::1%25eth0]']) {
    t.equal((await ask(stage.proxy, stage.guest, { headers: { Host: `${host}:${stage.plainPort}` } })).status, 400, host)
  }
  const [loopbackSix] = [await ask(stage.proxy, stage.guest, { headers: { Host: `[::1]:${stage.plainPort}` } })]
  t.equal(loopbackSix?.status, 403)
})

t.test('A17 and A22: metadata services stay out of reach also where their range is allowed, and other private ranges stay closed', async (t) => {
  const stage = await setStage(t, { allowPrivate: [`${loopback(0)}/24`, '169.254.0.0/16', '100.64.0.0/10'], limits: { connectMs: 5000 } })
  await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: undefined }]))
  const origin = await stage.origin(100)
  stage.names.records.set('imds.test', ['169.254.169.254'])
  stage.names.records.set('alibaba.test', ['100.100.100.200'])
  stage.names.records.set('metadata.google.internal', [loopback(100)])
  stage.names.records.set('ten.test', ['10.1.2.3'])
  const reason = async (name: string) => JSON.parse((await ask(stage.proxy, stage.guest, { name, headers: { Host: stage.host(name) } })).text).code
  t.equal(await reason('imds.test'), 'metadata_refused')
  t.equal(await reason('alibaba.test'), 'metadata_refused')
  t.equal(await reason('metadata.google.internal'), 'metadata_refused')
  t.equal(await reason('ten.test'), 'private_address')
  t.equal((await ask(stage.proxy, stage.guest, { headers: { Host: `169.254.169.254:${stage.plainPort}` } })).status, 403)
  t.equal((await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })).status, 200, 'the allowed range works')
  t.equal(origin.connections(), 1)
})

t.test('A18: one private address among public ones refuses the host', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  stage.names.records.set('api.good.test', [loopback(100), '10.0.0.1'])
  const answer = await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })
  t.equal(answer.status, 403)
  t.equal(origin.connections(), 0)
})

t.test('A19: a name that changes its address between check and connection leads to the address that was checked', async (t) => {
  const stage = await setStage(t)
  const origin = await stage.origin(100)
  let asked = 0
  stage.names.records.set('api.good.test', () => asked++ === 0 ? [loopback(100)] : ['10.0.0.1'])
  const answer = await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })
  t.equal(answer.status, 200)
  t.equal(asked, 1, 'it is resolved once')
  t.equal(origin.seen[0]?.headers.authorization, `Bearer ${SECRET}`)
})

t.test('A20: the machine itself, what the operator denied and other VMs are refused, also inside an allowed range', async (t) => {
  const stage = await setStage(t, { allowPrivate: ['127.0.0.0/8'], deny: [loopback(120)] })
  const other = loopback(11)
  await stage.proxy.policy(vmPolicy(stage.guest, [{}]), vmPolicy(other))
  for (const [name, address] of [['own.test', '127.0.0.1'], ['denied.test', loopback(120)], ['vm.test', other], ['self.test', stage.guest]] as const) {
    stage.names.records.set(name, [address])
    const answer = await ask(stage.proxy, stage.guest, { name, headers: { Host: stage.host(name) } })
    t.equal(answer.status, 403, name)
    t.match(answer.text, /own_address/)
  }
})

t.test('P20: a dead address is passed over for the next vetted one, and an origin with IPv6 only is reached', async (t) => {
  const stage = await setStage(t, { ipv6: true, allowPrivate: [`${loopback(0)}/24`, '::1'] })
  const origin = await stage.origin(100)
  stage.names.records.set('api.good.test', [loopback(99), loopback(100)])
  t.equal((await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })).status, 200)
  t.equal(origin.connections(), 1)
  await stage.origin(0, { address: '::1', hosts: ['six.good.test'] })
  stage.names.records.set('six.good.test', ['::1'])
  t.equal((await ask(stage.proxy, stage.guest, { name: 'six.good.test', headers: { Host: stage.host('six.good.test') } })).status, 200)
  stage.names.records.set('dead.good.test', [loopback(98)])
  const answer = await ask(stage.proxy, stage.guest, { name: 'dead.good.test', headers: { Host: stage.host('dead.good.test') } })
  t.equal(answer.status, 502)
  t.match(answer.text, /connect_failed/)
})

t.test('a name that does not exist, and a resolver that is silent, have their own reasons', async (t) => {
  const stage = await setStage(t)
  const missing = await ask(stage.proxy, stage.guest, { name: 'missing.test', headers: { Host: stage.host('missing.test') } })
  t.equal(missing.status, 502)
  t.match(missing.text, /resolve_failed/)
  stage.names.close()
  const silent = await ask(stage.proxy, stage.guest, { name: 'silent.test', headers: { Host: stage.host('silent.test') } })
  t.ok(silent.status === 504 || silent.status === 502)
  t.notMatch(silent.text, /ECONN|ETIME|127\./, 'the answer says nothing about why')
})

t.test('A24: a source without a policy is closed before it says a word, and there is a line about it', async (t) => {
  const stage = await setStage(t)
  const socket = connect({ host: stage.proxy.address, port: stage.proxy.ports.https, localAddress: loopback(66) })
  socket.on('error', () => {})
  await once(socket, 'close')
  t.equal(socket.bytesRead, 0)
  const entries = await stage.proxy.call('GET', '/metrics')
  t.match(entries.body, /berth_egress_refusals_total\{reason="unknown_source"\} 1/)
})

t.test('what a revision denies is reached no more from then on, and again when it is denied no more', async (t) => {
  const stage = await setStage(t)
  await stage.origin(20)
  const call = async () => (await ask(stage.proxy, stage.guest, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })).status
  const put = async (revision: number, denied?: readonly string[]) => (await stage.proxy.call('PUT', '/policy', { revision, denied, vms: [vmPolicy(stage.guest, [{}])] })).status
  t.equal(await call(), 200)
  t.equal(await put(10, ['192.0.2.0/24', loopback(20)]), 200)
  t.equal(await call(), 403, 'not even over a connection that was open')
  t.equal(await put(11), 200)
  t.equal(await call(), 200)
  const refused = await stage.proxy.call('PUT', '/policy', { revision: 12, denied: ['192.0.2.0/24', 'nowhere'], vms: [] })
  t.same([refused.status, JSON.parse(refused.body).message], [400, 'denied[1]: is not an address range'])
})
