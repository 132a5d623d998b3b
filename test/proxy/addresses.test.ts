import t, { type Test } from 'tap'
import { connect } from 'node:net'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ask } from './helpers/guest.ts'
import { loopback } from './helpers/network.ts'
import { SECRET, vmPolicy } from './helpers/proxy.ts'
import { setStage } from './helpers/setup.ts'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'
import { withoutMounts } from '../helpers/rights.ts'
import { startNames } from './helpers/names.ts'
import { createResolver } from '../../proxy/upstream/resolver.ts'
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

t.test('a name that takes its time is waited for until the deadline, however quick others are', async (t) => {
  const names = await startNames(loopback(2))
  t.teardown(() => names.close())
  const resolve = createResolver({ servers: [names.server], timeoutMs: 5000, ipv6: false })
  for (const name of ['one.test', 'two.test', 'three.test', 'four.test', 'five.test', 'slow.test']) names.records.set(name, [loopback(100)])
  names.delays.set('slow.test', 2500)
  for (const name of ['one.test', 'two.test', 'three.test', 'four.test', 'five.test']) t.same((await resolve(name)).addresses, [loopback(100)])
  t.same((await resolve('slow.test')).addresses, [loopback(100)])
})

/** What the system says of names, for a proxy whose configuration names no DNS server. */
function systemFiles (t: Test, hosts = ''): { readonly resolvConf: string, readonly hosts: string } {
  const folder = testFolder(t, { 'resolv.conf': `nameserver ${loopback(2)}\nsearch corp.test\n`, hosts: `127.0.0.1 localhost\n${hosts}` })
  return { resolvConf: join(folder, 'resolv.conf'), hosts: join(folder, 'hosts') }
}

t.test('names of one VM that nobody answers hold up no name of another, also with the system\'s DNS servers', { skip: withoutMounts }, async (t) => {
  const stage = await setStage(t, { system: systemFiles(t) })
  await stage.origin(100)
  const other = loopback(11)
  await stage.proxy.policy(vmPolicy(stage.guest, [{}]), vmPolicy(other, [{}]))
  const silent = Array.from({ length: 12 }, (_, index) => `silent-${index}.test`)
  for (const name of silent) stage.names.delays.set(name, Infinity)
  const waiting = silent.map(async name => await ask(stage.proxy, stage.guest, { headers: { Host: `${name}:${stage.plainPort}` } }))
  await eventually('names of the first VM are asked for', () => new Set(stage.names.asked.filter(name => silent.includes(name))).size >= 4)
  const answer = await ask(stage.proxy, other, { name: 'api.good.test', headers: { Host: stage.host('api.good.test') } })
  t.equal(answer.status, 200, answer.text)
  for (const { status, text } of await Promise.all(waiting)) t.match({ status, text }, { status: 504, text: /resolve_timeout/ })
})

t.test('without configured DNS servers a name is looked up in /etc/hosts and by the servers of resolv.conf, as both are now, and never with a search domain', { skip: withoutMounts }, async (t) => {
  const system = systemFiles(t, `${loopback(100)}\tother Written.good.test # here\n`)
  const stage = await setStage(t, { system })
  await stage.proxy.policy(vmPolicy(stage.guest, [{ hosts: undefined }]))
  await stage.origin(100, { plain: true })
  const status = async (name: string): Promise<number> => (await ask(stage.proxy, stage.guest, { headers: { Host: `${name}:${stage.plainPort}` } })).status
  t.equal(await status('written.good.test'), 200)
  t.equal(await status('api.good.test'), 200)
  stage.names.records.set('intranet.corp.test', [loopback(100)])
  t.equal(await status('intranet'), 502)
  t.same(stage.names.asked.filter(name => name !== 'api.good.test'), ['intranet'])

  await writeFile(system.hosts, `${loopback(100)} later.good.test\n`)
  t.equal(await status('later.good.test'), 200, 'a name that was written meanwhile')
  const next = await startNames(loopback(3), 53)
  t.teardown(() => next.close())
  next.records.set('moved.good.test', [loopback(100)])
  await writeFile(system.resolvConf, `nameserver ${loopback(3)}\n`)
  t.equal(await status('moved.good.test'), 200, 'a server that was named meanwhile')
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
