import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { packageRoot } from '../../core/package-root.ts'
import { inheritedSockets } from '../../proxy/config/inherited.ts'
import { checkConfig } from '../../proxy/config/load.ts'
import { ProxyConfig } from '../../proxy/config/schema.ts'
import { parsePlace } from '../../proxy/parent/place.ts'
import { canonicalHost, parseAuthority } from '../../proxy/contract/canonical-host.ts'

const MINIMAL = { listen: { control: '/run/control.sock' }, ca: { directory: '/ca' }, audit: { file: '/log/requests.jsonl' } }

t.test('a minimal configuration gets every default', async (t) => {
  t.match(checkConfig(MINIMAL), { listen: { httpPort: 80, httpsPort: 443 }, resolver: { servers: [], timeoutMs: 5000, ipv6: true }, limits: { connections: 1024, requests: 256 }, dns: { ttlSeconds: 60 }, audit: { files: 8 } })
})

t.test('the example has every key at its default', async (t) => {
  const text = await readFile(join(packageRoot, 'config/egress.yaml'), 'utf8')
  const { listen: { control }, ca, audit: { file } } = checkConfig(parse(text))
  t.same(checkConfig(parse(text)), checkConfig({ listen: { control }, ca, audit: { file } }))
  const keys = (schema: object, key: string): string[] => 'properties' in schema && schema.properties instanceof Object
    ? Object.entries(schema.properties).flatMap(([name, value]) => keys(value, name))
    : [key]
  for (const key of keys(ProxyConfig, '')) t.match(text, new RegExp(`^ *(?:# )?${key}: `, 'm'), key)
})

t.test('unknown keys, missing ones and wrong ranges are refused with their place', async (t) => {
  t.throws(() => checkConfig({ ...MINIMAL, more: 1 }), /more|additional/)
  t.throws(() => checkConfig({ ...MINIMAL, limits: { requests: 0 } }), /limits\.requests/)
  t.throws(() => checkConfig({ ca: { directory: '/ca' } }), /listen/)
  t.throws(() => checkConfig({ ...MINIMAL, allowPrivate: ['10.0.0.0/33'] }), /allowPrivate: 10\.0\.0\.0\/33/)
  t.throws(() => checkConfig({ ...MINIMAL, deny: ['example.com'] }), /deny: /)
  t.throws(() => checkConfig('nothing'))
})

t.test('sockets that systemd passes are found by name, and only by the process that they are for', async (t) => {
  const environment = { LISTEN_FDS: '2', LISTEN_PID: '42', LISTEN_FDNAMES: 'http:https' }
  t.same([...inheritedSockets(environment, 42)], [['http', 3], ['https', 4]])
  t.equal(inheritedSockets(environment, 43).size, 0)
  t.equal(inheritedSockets({}, 42).size, 0)
  t.same(parsePlace('fd:https', inheritedSockets(environment, 42)), { kind: 'descriptor', descriptor: 4 })
  t.throws(() => parsePlace('fd:dns', inheritedSockets(environment, 42)), /dns/)
  t.same(parsePlace('[::1]:80', new Map()), { kind: 'address', host: '::1', port: 80 })
  t.throws(() => parsePlace('nowhere', new Map()), /nowhere/)
})

t.test('A12: one function reads every host name, and refuses what could be read in two ways', async (t) => {
  t.same(canonicalHost('API.Example.COM.'), { name: 'api.example.com', family: 0 })
  t.same(canonicalHost('1.2.3.4'), { name: '1.2.3.4', family: 4 })
  for (const text of ['', '.', 'a..b', '-a.b', 'a-.b', 'a_b.c', 'a b', 'a%00', 'a/b', 'ä.test', 'a.1', '0x7f.1', '127.1', '2130706433', '0x7f000001', '1.2.3.4.', '01.2.3.4', '1.2.3.256', `${'a'.repeat(64)}.test`, 'a.'.repeat(130)]) {
    t.equal(canonicalHost(text), undefined, JSON.stringify(text))
  }
  t.match(parseAuthority('[2001:DB8:0::1]:443'), { name: '2001:db8::1', family: 6, port: 443 })
  for (const text of ['a:', 'a:0', 'a:65536', 'a:1:2', 'a:+1', '[::1', '[::1]x', '[::1%eth0]', '[1.2.3.4]', 'user@a', 'a, b']) t.equal(parseAuthority(text), undefined, JSON.stringify(text))
})
