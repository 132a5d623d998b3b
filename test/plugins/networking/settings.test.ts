// Networks, names and limits as values.
import t from 'tap'
import { parseIPv4 } from '../../../core/library/ipv4.ts'
import { addressAt, capacityOf, parseCidr } from '../../../plugins/networking/cidr.ts'
import { countersOf } from '../../../plugins/networking/counters.ts'
import { deviceMac, isGuestLink, namespaceOf, shaperOf, tapOf } from '../../../plugins/networking/names.ts'
import { renderAdmission, renderRuleset } from '../../../plugins/networking/ruleset.ts'
import { effectiveLimits, resolveSettings } from '../../../plugins/networking/settings.ts'
import { configOf, type Changes } from './world.ts'

const place = { dataDir: '/srv/berth', hostId: 'h' }

t.test('a network is read, and what is none is refused with the reason', async (t) => {
  const cidr = parseCidr('10.100.0.0/16')
  t.equal(addressAt(cidr, 1), '10.100.0.1')
  t.equal(addressAt(cidr, 65_534), '10.100.255.254')
  t.equal(capacityOf(cidr), 65_533)
  t.equal(parseIPv4('255.255.255.255'), 2 ** 32 - 1)
  for (const text of ['10.100.0.0', '10.100.0.0/31', '10.0.0.0/7', '10.100.0/16', '010.0.0.0/8', '256.0.0.0/8', '10.0.0.0/16/8']) t.throws(() => parseCidr(text), { message: /is no IPv4 network/ }, text)
  t.throws(() => parseCidr('10.100.0.1/16'), { message: /10\.100\.0\.0\/16; write the network/ })
})

t.test('a wrong value names its field', async (t) => {
  const cases: [Changes, string][] = [
    [{ cidr: '10.0.0.0/31' }, 'cidr'], [{ deniedNetworks: ['10.0.0.0/8', '1.2.3.400'] }, 'deniedNetworks.1'], [{ allowPrivate: ['10.0.0.0/33'] }, 'allowPrivate.0'],
    [{ dns: { servers: ['1.1.1.1#0'] } }, 'dns.servers.0'], [{ bandwidth: { download: '0bps' } }, 'bandwidth.download']
  ]
  for (const [changes, field] of cases) {
    t.throws(() => resolveSettings(configOf(changes), place), { message: new RegExp(`^plugins\\.networking\\.config\\.${field.replaceAll('.', '\\.')}:`) }, field)
  }
})

t.test('names fit, differ, and say whose they are', async (t) => {
  for (const name of [tapOf('a'), shaperOf('a')]) {
    t.ok(name.length <= 15 && isGuestLink(name), name)
    t.equal(name, name.startsWith('bt') ? tapOf('a') : shaperOf('a'))
  }
  t.equal(new Set(Array.from({ length: 20_000 }, (_, at) => tapOf(`instance-${at}`))).size, 20_000)
  for (const name of ['eth0', 'berth0', 'uplink', 'bt', 'btaaaaaaaaaaaaa']) t.notOk(isGuestLink(name), name)
  t.equal(namespaceOf('/var/lib/berth'), 'berth')
  t.match(namespaceOf('/tmp/other'), /^berth-[0-9a-f]{8}$/)
  t.not(deviceMac('h', 'gateway'), deviceMac('g', 'gateway'))
  t.match(deviceMac('h', 'gateway'), /^06:/)
})

t.test('an instance\'s own limit holds; without one it gets its share; without a capacity there is none', async (t) => {
  const shared = { capacity: { downloadBps: 1000, uploadBps: 400 }, hostCpus: 8 }
  t.same(effectiveLimits({ vcpus: 2 }, shared), { downloadBps: 250, uploadBps: 100 })
  t.same(effectiveLimits({ vcpus: 2, uploadBps: 7 }, shared), { downloadBps: 250, uploadBps: 7 })
  t.same(effectiveLimits({ vcpus: 99 }, shared), { downloadBps: 1000, uploadBps: 400 })
  t.same(effectiveLimits({ vcpus: 2, downloadBps: 5 }, { capacity: {}, hostCpus: 8 }), { downloadBps: 5 })
  t.same(effectiveLimits({ vcpus: 2 }, { capacity: {}, hostCpus: 8 }), {})
})

t.test('the rules have no line per guest, only elements', async (t) => {
  const settings = resolveSettings(configOf({}), place)
  const guests = Array.from({ length: 500 }, (_, at) => ({ tap: tapOf(`i${at}`), mac: `02:00:00:00:${(at >> 8).toString(16).padStart(2, '0')}:${(at & 255).toString(16).padStart(2, '0')}`, ip: addressAt(settings.cidr, at + 2), egress: 'all' as const, uid: 1_900_000_000 + at }))
  const lines = (count: number): number => renderRuleset({ settings, denied: [], redirects: new Map([[80, 18_080]]) }, guests.slice(0, count)).split('\n').length
  t.equal(lines(500), lines(0))
  const admission = renderAdmission({ tap: 'btaaaaaaaaaaaa', mac: '02:00:00:00:00:01', ip: '10.100.0.2', egress: 'http_https_only' })
  t.same(admission.trim().split('\n'), ['add element bridge berth senders { "btaaaaaaaaaaaa" . 02:00:00:00:00:01 . 10.100.0.2 }', 'add element inet berth guests { 10.100.0.2 }', 'add element inet berth mediated { 10.100.0.2 }'])
})

t.test('counters are read from the kernel\'s table, seen from the VM', async (t) => {
  const table = 'Inter-|   Receive    |  Transmit\n face |bytes    packets\n    lo:       0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nbtaaaaaaaaaaaa:1234 5 0 0 0 0 0 0 99999999999 6 0 0 0 0 0 0\n'
  t.same(countersOf(table, 'btaaaaaaaaaaaa'), { rxBytes: 99_999_999_999, txBytes: 1234 })
  t.equal(countersOf(table, 'btaaaaaaaaaaa'), undefined)
})
