// What each mode lets out of a real VM, however hostile its guest: seen from inside, and by every packet that arrives on the far side.
// Run by modes.long.test.ts in a network namespace of its own.
import { readFile } from 'node:fs/promises'
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { API, GREETING, HOST, HTTPS, NAME_SERVER, OTHER, STRANGER, STRANGER_TCP, STRANGER_UDP, SVCB } from './far/contract.ts'
import { addGuest, attempt, fetchFrom, mediated, mediates, MOCK, refused, SECRET, setScene, type Guest, type Scene } from './scene.ts'

interface Guests { readonly sealed: Guest, readonly web: Guest, readonly free: Guest }

const UNREACHABLE = ['ECONNREFUSED', 'EHOSTUNREACH', 'EACCES', 'EPERM', 'ENETUNREACH']
const METADATA = '169.254.169.254'
const WEB_PORTS = [80, 443] as const

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const scene = await setScene(t)
  const [sealed, web, free] = [await addGuest(scene, 'sealed', mediated('all')), await addGuest(scene, 'web', mediated('http_https_only')), await addGuest(scene, 'free', mediated('none'))]
  const guests = { sealed, web, free }
  const tests: Readonly<Record<string, (t: Test, scene: Scene, guests: Guests) => Promise<void>>> = {
    'A25: in mode all, TCP to any port of anybody is reset at once, and 80 and 443 of anybody are the proxy': sealedTcp,
    'A26: in mode http_https_only, 22 and 5432 get through, and 80 and 443 of anybody are the proxy': webTcp,
    'A6, A34: whatever address a guest makes of a name, the proxy dials its own, and a credential goes over TLS alone': ownAddresses,
    'A14, A17, A20: the host, its metadata, the gateway, the proxy\'s ports and other guests are out of reach, directly and through the proxy': insiders,
    'A24: a guest without a policy gets nothing of the proxy': withoutPolicy,
    'A27: there is no IPv6, whatever a guest sets up for itself': ipv6,
    'A31: QUIC, DNS over TLS and QUIC, direct DNS and pings follow the mode': otherProtocols,
    'A31: nobody is told of HTTP/3 or hidden names': offers,
    'A32: a burst of names carries nothing out in mode all, and is held up in the other': bursts,
    'A48: the key of the proxy\'s authority is nowhere in a guest': noKey,
    'P26: a guest\'s own services on localhost, and the gateway\'s DNS, are as without a policy': localhost
  }
  const only = process.argv.slice(2)
  for (const [name, run] of Object.entries(tests)) {
    if (only.length > 0 && !only.some((part) => name.includes(part))) continue
    await t.test(name, { timeout: 900_000 }, async (t) => {
      await scene.far.forget()
      await run(t, scene, guests)
    })
  }
}

function at (address: string, ports: readonly number[]): string[] {
  return ports.map((port) => `${address}:${port}`)
}

function isWeb (port: number): boolean {
  return WEB_PORTS.some((each) => each === port)
}

/** Connections that the proxy takes, and says nothing on: it waits for what the guest has to say. */
function takenByProxy (t: Test, attempts: Awaited<ReturnType<typeof attempt>>): void {
  for (const { target, outcome, words } of attempts) t.same([outcome, words], ['open', ''], `${target} is the proxy`)
}

async function sealedTcp (t: Test, scene: Scene, { sealed }: Guests): Promise<void> {
  const others = STRANGER_TCP.filter((port) => !isWeb(port) && port !== 53)
  refused(t, await attempt(sealed, 'tcp', [...at(STRANGER, others), ...at(API.address, others), ...at(METADATA, [22]), ...at('192.0.2.7', [25, 6667])]), 'directly')
  takenByProxy(t, await attempt(sealed, 'tcp', [STRANGER, API.address, METADATA, '192.0.2.7'].flatMap((address) => at(address, WEB_PORTS))))
  t.same(await scene.far.arrived(), [], 'no packet of all that is on the far side')
  await mediates(t, scene, sealed, 'through the proxy')
  t.same((await scene.far.arrived()).filter((line) => line.startsWith('tcp')), [`tcp ${API.address}:443`], 'which goes where it must alone')
}

async function webTcp (t: Test, scene: Scene, { web }: Guests): Promise<void> {
  const others = STRANGER_TCP.filter((port) => !isWeb(port))
  for (const { target, outcome, words } of await attempt(web, 'tcp', at(STRANGER, others))) t.same([outcome, words], ['open', `${GREETING} ${HOST}`], `${target} directly, under the host's address`)
  takenByProxy(t, await attempt(web, 'tcp', [STRANGER, METADATA, '192.0.2.7'].flatMap((address) => at(address, WEB_PORTS))))
  const arrived = await scene.far.arrived()
  for (const port of others) t.ok(arrived.includes(`tcp ${STRANGER}:${port}`), `${port} has arrived`)
  for (const port of WEB_PORTS) t.notOk(arrived.includes(`tcp ${STRANGER}:${port}`), `${port} has not`)
  await mediates(t, scene, web, 'through the proxy')
}

async function ownAddresses (t: Test, { far }: Scene, { sealed, web }: Guests): Promise<void> {
  for (const [name, guest] of Object.entries({ sealed, web })) {
    await guest.run(`cp /etc/hosts /tmp/hosts; echo ${STRANGER} ${API.host} >> /etc/hosts`)
    t.equal(await fetchFrom(guest, `https://${API.host}/hosts-${name}`), `hello from ${API.host}`)
    await guest.run('cat /tmp/hosts > /etc/hosts')
    t.equal(await fetchFrom(guest, `http://${API.host}/plain-${name}`, `Authorization: ${MOCK}`), `hello from ${API.host}`)
    t.equal(await fetchFrom(guest, `https://${OTHER.host}/other-${name}`, `Authorization: ${MOCK}`), `hello from ${OTHER.host}`)
    t.match(await fetchFrom(guest, `https://${STRANGER}/`), /error|alert|failed|closed|reset/i, 'an address has no certificate')
    const seen = await far.seen()
    t.match(seen.find(({ url }) => url === `/hosts-${name}`), { authorization: `Bearer ${SECRET}`, secure: true })
    for (const path of [`/plain-${name}`, `/other-${name}`]) t.equal(seen.find(({ url }) => url === path)?.authorization, MOCK, `${path}: what the guest sent`)
  }
  t.same((await far.arrived()).filter((line) => line.includes(STRANGER)), [], 'the address that guests made of the name got no packet')
}

async function insiders (t: Test, { gateway }: Scene, { sealed, web, free }: Guests): Promise<void> {
  for (const guest of [sealed, web]) {
    for (const { target, outcome } of await attempt(guest, 'tcp', at(free.ip, [22, 80]))) t.equal(outcome, 'EHOSTUNREACH', `${target}: another guest does not answer on the same wire`)
    await guest.run(`ip route add ${free.ip}/32 via ${gateway}`)
    for (const [address, path] of [[METADATA, '/latest/meta-data/'], [gateway, '/'], [HOST, '/'], [free.ip, '/'], ['10.0.0.1', '/']] as const) {
      t.match(await fetchFrom(guest, `http://${address}${path}`), 'status 403', `${address} through the proxy`)
    }
    refused(t, await attempt(guest, 'tcp', [...at(gateway, [22, 18_080, 18_443, 18_053]), ...at(HOST, [22]), ...at(free.ip, [7, 22])]), 'directly', UNREACHABLE)
  }
}

async function withoutPolicy (t: Test, { gateway, far, server }: Scene, { free }: Guests): Promise<void> {
  refused(t, await attempt(free, 'tcp', at(gateway, [18_080, 18_443, 18_053])), 'the proxy\'s ports', UNREACHABLE)
  t.equal(await fetchFrom(free, `http://${API.address}/free`), `hello from ${API.host}`, 'it goes directly out')
  t.equal((await far.seen()).find(({ url }) => url === '/free')?.authorization, undefined)
  t.match(await server.api.call('GET', `/instances/${free.id}/egress`), { entries: [] }, 'and nothing of it is in the log of requests')
}

async function ipv6 (t: Test, { far }: Scene, { sealed, web, free }: Guests): Promise<void> {
  const router = 'fe80::1'
  for (const [name, guest] of Object.entries({ sealed, web, free })) {
    const device = (await guest.run('ls /sys/class/net | grep -v lo')).trim()
    const mac = (await guest.run('ip neigh show | sed -n "s/.*lladdr \\([0-9a-f:]*\\).*/\\1/p" | head -n 1')).trim()
    await guest.run(`echo 0 > /proc/sys/net/ipv6/conf/${device}/disable_ipv6; ip -6 addr add 2001:db8:99::2/64 dev ${device}; ip -6 neigh add ${router} lladdr ${mac} dev ${device}; ip -6 route add default via ${router} dev ${device}`)
    t.match(await guest.run(`ip -6 route show; ip -6 addr show dev ${device}`), /default via fe80::1[\s\S]*2001:db8:99::2/, `${name} has all that IPv6 needs`)
    t.notMatch(await guest.run('ping -6 -c 2 -W 1 2001:db8:66::66'), / bytes from /, `${name}: no answer`)
    t.notMatch(await guest.run('curl -g -m 2 http://[2001:db8:66::66]/; echo hello | nc -w 2 2001:db8:66::66 22'), /direct/)
    // Guests that share the bridge do not meet on their link-local addresses either.
    t.notMatch(await guest.run(`ping -6 -c 1 -W 1 ff02::1%${device} | grep -v "$(ip -6 addr show dev ${device} scope link | sed -n 's/.*inet6 \\([^/]*\\).*/\\1/p')"`), / bytes from fe80/, `${name}: nobody else on the link`)
  }
  t.same((await far.arrived()).filter((line) => line === 'ipv6'), [])
}

async function otherProtocols (t: Test, { far, gateway }: Scene, { sealed, web }: Guests): Promise<void> {
  const udp = STRANGER_UDP.filter((port) => port !== 53)
  refused(t, await attempt(sealed, 'udp', at(STRANGER, udp)), 'mode all', UNREACHABLE)
  t.match(await sealed.run(`probe dns ${STRANGER} 1 anything.test`), /^0 1/, 'mode all: UDP 53 of anybody is the proxy\'s made-up answer')
  t.notMatch(await sealed.run(`ping -c 1 -W 2 ${STRANGER}`), / bytes from /, 'mode all: no ICMP, so no tunnel in it')
  t.same(await far.arrived(), [], 'mode all: nothing on the far side')
  const closed = [80, 443]
  refused(t, await attempt(web, 'udp', at(STRANGER, closed)), 'mode http_https_only: no QUIC', UNREACHABLE)
  for (const { target, words } of await attempt(web, 'udp', at(STRANGER, udp.filter((port) => !closed.includes(port))))) t.equal(words, `${GREETING} ${HOST}`, `mode http_https_only: UDP ${target} directly, as documented`)
  t.match(await web.run(`ping -c 1 -W 2 ${STRANGER}`), / bytes from /, 'mode http_https_only: ICMP directly')
  t.match(await web.run(`probe dns ${gateway} 1 ${API.host}`), /^0 1/, 'mode http_https_only: real answers of the gateway')
  const arrived = await far.arrived()
  for (const port of closed) t.notOk(arrived.includes(`udp ${STRANGER}:${port}`))
}

async function offers (t: Test, { far, gateway }: Scene, { sealed, web, free }: Guests): Promise<void> {
  for (const [name, guest] of Object.entries({ sealed, web, free })) {
    for (const type of [HTTPS, SVCB]) t.match(await guest.run(`probe dns ${gateway} ${type} ${API.host}`), /^0 0/, `${name}: type ${type} is empty`)
  }
  t.match(await web.run(`probe dns ${NAME_SERVER} ${HTTPS} ${API.host}`), /^0 1/, 'the server outside would have told of it')
  t.notOk((await far.asked()).length === 0)
}

async function bursts (t: Test, { far, gateway, server }: Scene, { sealed, web }: Guests): Promise<void> {
  const count = 3000
  const answered = Number(await sealed.run(`probe burst ${gateway} ${count} sealed.test`))
  t.ok(answered < count, `mode all: ${answered} of ${count} were answered`)
  t.same((await far.asked()).filter((name) => name.endsWith('sealed.test')), [], 'mode all: and none was asked outside')
  const through = Number(await web.run(`probe burst ${gateway} ${count} web.test`))
  const asked = (await far.asked()).filter((name) => name.endsWith('web.test')).length
  t.ok(through < count && asked < count, `mode http_https_only: ${through} of ${count} were answered, ${asked} asked outside`)
  await mediates(t, { far } as Scene, sealed, 'after it')
  t.match(await readFile(server.logFile, 'utf8'), 'listening')
}

/** Not looked at: twenty thousand files of the kernel's own packages, which are on a disk that all guests share and none can write to. */
async function noKey (t: Test, _scene: Scene, { sealed, web }: Guests): Promise<void> {
  for (const guest of [sealed, web]) {
    const found = (await guest.run('exec 2> /dev/null; for words in "BEGIN CERTIFICATE" "PRIVATE KEY"; do find /etc /usr /run /tmp /root /home /var \\( -path "/usr/src/linux-*" -o -path /usr/lib/modules \\) -prune -o -type f -size -256k -exec grep -l -- "$words" {} +; echo; done')).split('\n\n')
    t.match(found[0], 'berth', 'the certificate is there')
    t.equal(found[1]?.trim() ?? '', '', 'and no key')
  }
}

async function localhost (t: Test, { gateway }: Scene, { sealed, web }: Guests): Promise<void> {
  for (const guest of [sealed, web]) {
    await guest.run('mkdir -p /tmp/www; printf own > /tmp/www/index.html; httpd -p 127.0.0.1:80 -h /tmp/www; httpd -p 127.0.0.1:443 -h /tmp/www; httpd -p 8080 -h /tmp/www')
    for (const place of ['127.0.0.1', 'localhost', '127.0.0.1:443', `${guest.ip}:8080`]) t.equal(await fetchFrom(guest, `http://${place}/`), 'own', place)
    t.match(await guest.run(`probe dns ${gateway} 1 ${API.host}`), /^0 1/)
    t.match(await guest.run('cat /etc/resolv.conf'), gateway)
  }
}
