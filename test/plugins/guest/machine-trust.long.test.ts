// The egress authority in real VMs, with roots as distributions lay them out: what programs find, over restarts, changes and removal.
import { X509Certificate } from 'node:crypto'
import { mkdir, mkdtemp, readFile, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { buffer, text } from 'node:stream/consumers'
import t from 'tap'
import type { Test } from 'tap'
import { pino } from 'pino'
import { createHostCommands } from '../../../core/process/run.ts'
import type { GuestLink, GuestNetwork, GuestSystem, GuestTrust, Workload } from '../../../plugins/guest/contract.ts'
import { StreamLink } from '../../../plugins/guest/link/link.ts'
import { GUEST_BUNDLE, GUEST_CERTIFICATE, trustEnvironment } from '../../../plugins/guest/trust-environment.ts'
import { makeOverlay, makeRoot, startMachine, testFolder, testSystems, type Machine } from './helpers/machine.ts'

const commands = createHostCommands()
const NETWORK: GuestNetwork = { mac: '02:00:00:00:00:21', address: '10.6.0.2/24', gateway: '10.6.0.1', dns: ['10.6.0.1'] }
/** padding of comments, so that the bundle needs several messages */
const PADDING = '# a line of a bundle that a host hands on to its guests\n'.repeat(5000)

t.setTimeout(1_400_000)
const folder = await testFolder(t)
const system: GuestSystem = await (await testSystems(folder)).system()

interface Authority { readonly pem: string, readonly hash: string, readonly leaf: string }

/** An authority and the path of a certificate that it has signed. */
async function makeAuthority (name: string): Promise<Authority> {
  const path = (part: string) => join(folder, `${name}.${part}`)
  const openssl = async (...args: string[]) => (await commands.run('openssl', args)).stdout
  await openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30', '-subj', `/CN=${name}`, '-keyout', path('key'), '-out', path('pem'))
  await openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj', `/CN=leaf of ${name}`, '-keyout', path('leaf.key'), '-out', path('csr'))
  await openssl('x509', '-req', '-in', path('csr'), '-CA', path('pem'), '-CAkey', path('key'), '-CAcreateserial', '-days', '10', '-out', path('leaf'))
  return { pem: await readFile(path('pem'), 'utf8'), hash: (await openssl('x509', '-hash', '-noout', '-in', path('pem'))).trim(), leaf: path('leaf') }
}

const [ours, later, roots, hosts] = await Promise.all(['ours', 'later', 'roots', 'hosts'].map(makeAuthority)) as [Authority, Authority, Authority, Authority]

function trustOf (authority: Authority): GuestTrust {
  return { certificate: authority.pem, subjectHash: authority.hash, bundle: `${PADDING}${hosts.pem}${authority.pem}` }
}

interface Kind {
  readonly name: string
  readonly files: Readonly<Record<string, string>>
  readonly links: Readonly<Record<string, string>>
  /** where programs of this distribution look */
  readonly bundles: readonly string[]
}

const bundle = `# the image's own\n${roots.pem}`
const KINDS: readonly Kind[] = [
  { name: 'Debian', files: { 'etc/ssl/certs/ca-certificates.crt': bundle, 'etc/ssl/certs/roots.pem': roots.pem }, links: { [`etc/ssl/certs/${roots.hash}.0`]: 'roots.pem', 'usr/lib/ssl/certs': '/etc/ssl/certs' }, bundles: ['/etc/ssl/certs/ca-certificates.crt'] },
  { name: 'Alpine', files: { 'etc/ssl/certs/ca-certificates.crt': bundle }, links: { 'etc/ssl/cert.pem': 'certs/ca-certificates.crt', 'etc/ssl1.1/cert.pem': '/etc/ssl/cert.pem' }, bundles: ['/etc/ssl/cert.pem', '/etc/ssl/certs/ca-certificates.crt'] },
  { name: 'RHEL', files: { 'etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem': bundle, 'etc/pki/ca-trust/source/anchors/.keep': '' }, links: { 'etc/pki/tls/certs/ca-bundle.crt': '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem', 'etc/pki/tls/cert.pem': 'certs/ca-bundle.crt', 'etc/ssl/certs': '../pki/tls/certs' }, bundles: ['/etc/pki/tls/certs/ca-bundle.crt', '/etc/pki/tls/cert.pem', '/etc/ssl/certs/ca-bundle.crt'] },
  { name: 'none', files: {}, links: {}, bundles: ['/etc/ssl/certs/ca-certificates.crt'] }
]

async function fill (root: string, { files, links }: Kind): Promise<void> {
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), content)
  }
  for (const [path, target] of Object.entries(links)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await symlink(target, join(root, path))
  }
}

interface Running { readonly link: GuestLink, readonly machine: Machine, readonly say: (script: string) => Promise<string>, readonly startMs: number }

async function start (t: Test, place: string, image: string, overlay: string, trust: GuestTrust | undefined): Promise<Running> {
  const machine = await startMachine(t, await mkdtemp(join(place, 'vm-')), { image, overlay, system })
  const link = new StreamLink(await machine.connect(), { log: pino({ level: 'silent' }), answerTimeoutMs: 120_000 })
  t.teardown(() => link.close())
  await link.hello
  const workload: Workload = {
    argv: ['/bin/sleep', '1000'], env: trust === undefined ? {} : trustEnvironment({ PIP_CERT: '/mine' }), cwd: '/', user: '', hostname: 'box', mounts: [],
    network: NETWORK, agent: true, ...trust === undefined ? {} : { trust }
  }
  const began = performance.now()
  await link.run(workload)
  const startMs = performance.now() - began
  const say = async (script: string) => {
    const session = link.exec({ argv: ['/bin/busybox', 'sh', '-c', script] })
    session.stdin.end()
    const [out] = await Promise.all([text(session.stdout), session.result])
    return out.trim()
  }
  return { link, machine, say, startMs }
}

async function stop ({ link, machine }: Running): Promise<void> {
  await link.shutdown(0, 9)
  await machine.ended
}

/** A copy on the host of a folder in the guest, with files in the place of links. */
async function copyOf ({ link }: Running, path: string): Promise<string> {
  const session = link.exec({ argv: ['/bin/busybox', 'tar', '-c', '-h', '-f', '-', '-C', path, '.'] })
  session.stdin.end()
  const [archive] = await Promise.all([buffer(session.stdout), session.result])
  const copy = await mkdtemp(join(folder, 'copy-'))
  await commands.run('tar', ['-x', '-C', copy], { input: archive })
  return copy
}

async function verifies (leaf: string, ...where: string[]): Promise<boolean> {
  return commands.run('openssl', ['verify', ...where, leaf]).then(() => true, () => false)
}

async function trusts (t: Test, running: Running, kind: Kind, { leaf }: Authority, wanted = true): Promise<void> {
  for (const path of wanted ? [...kind.bundles, GUEST_BUNDLE] : kind.name === 'none' ? [] : kind.bundles) {
    const copy = join(await copyOf(running, dirname(path)), path.split('/').at(-1) ?? '')
    t.equal(await verifies(leaf, '-no-CApath', '-CAfile', copy), wanted, `${path}: ${wanted ? 'has' : 'does not have'} the authority`)
    t.ok(await verifies((kind.name === 'none' ? hosts : roots).leaf, '-no-CApath', '-CAfile', copy), `${path}: has the others`)
    t.ok((await readFile(copy, 'utf8')).split('berth egress authority:').length <= 2, `${path}: at most once`)
  }
  const hashed = await copyOf(running, '/etc/ssl/certs')
  t.equal(await verifies(leaf, '-no-CAfile', '-CApath', hashed), wanted, 'by its hash')
}

for (const kind of KINDS) {
  await t.test(kind.name, async (t) => {
    const place = await mkdtemp(join(folder, 'kind-'))
    const image = await makeRoot(place, (root) => fill(root, kind))
    const overlay = await makeOverlay(place, 64 * 2 ** 20)
    const listing = 'busybox find /etc/ssl /etc/pki /usr/local ! -type d 2> /dev/null | busybox sort | busybox xargs busybox stat -c "%n %i %s %Y"'

    let running = await start(t, place, image, overlay, trustOf(ours))
    t.comment(`run with trust, first: ${running.startMs.toFixed(0)} ms`)
    await trusts(t, running, kind, ours)
    t.equal(new X509Certificate(await running.say(`cat ${GUEST_CERTIFICATE}`)).subject, 'CN=ours', 'the certificate alone')
    t.match(await running.say('busybox dmesg'), /berth-init: trust: the egress authority is in \d bundles[^\n]* with 0 problems/, 'the guest\'s log says so')
    t.equal(await running.say('echo $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS $PIP_CERT'), `${GUEST_BUNDLE} ${GUEST_CERTIFICATE}`, 'what the user has set is not replaced')
    t.equal(await running.say('cat /proc/sys/net/ipv6/conf/eth0/disable_ipv6; busybox ip -6 addr show dev eth0'), '1', 'its device does not speak IPv6')
    t.match(await running.say('busybox ip addr show eth0; busybox ip route; cat /etc/resolv.conf'), /02:00:00:00:00:21[^]*10\.6\.0\.2\/24[^]*default via 10\.6\.0\.1[^]*nameserver 10\.6\.0\.1/)
    const before = await running.say(listing)
    await running.link.sleep()
    await running.link.wake({ hostname: 'other', newMachine: true, network: { ...NETWORK, address: '10.6.0.3/24' } })
    t.equal(await running.say(listing), before, 'a wake as another machine changes nothing')
    await stop(running)

    running = await start(t, place, image, overlay, trustOf(ours))
    t.comment(`run with trust, again: ${running.startMs.toFixed(0)} ms`)
    t.equal(await running.say(listing), before, 'a restart writes nothing')
    await stop(running)

    running = await start(t, place, image, overlay, trustOf(later))
    await trusts(t, running, kind, later)
    await trusts(t, running, kind, ours, false)
    await stop(running)

    running = await start(t, place, image, overlay, undefined)
    t.comment(`run without trust, removal: ${running.startMs.toFixed(0)} ms`)
    await trusts(t, running, kind, later, false)
    t.equal(await running.say('busybox find / -xdev -name "*berth*" -o -xdev -name "ca-certificates.crt" -size 0'), '', 'nothing is left')
    t.equal(await running.say('cat /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/cert.pem 2> /dev/null'), kind.name === 'none' ? '' : bundle.trim(), 'the bundle is the image\'s again')
    t.notMatch(await running.machine.console(), /Oops|Call Trace|berth-init/)
    await stop(running)
  })
}

await t.test('a network without a device is an end with a reason', async (t) => {
  const machine = await startMachine(t, await mkdtemp(join(folder, 'lone-')), { system, network: false })
  const link = new StreamLink(await machine.connect(), { log: pino({ level: 'silent' }), answerTimeoutMs: 120_000 })
  t.teardown(() => link.close())
  await t.rejects(link.run({ argv: ['/bin/true'], env: {}, cwd: '/', user: '', hostname: 'box', mounts: [], network: NETWORK, agent: true }),
    { code: 'guest_refused', errno: 19, exitCode: 255, message: 'network: there is no network device' })
  await machine.ended
  t.match(await machine.report(), /exit_code=255[^]*error=network: there is no network device[^]*end\n/)
})
