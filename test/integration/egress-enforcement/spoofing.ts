// A guest with all power over its own kernel pretends to be another guest, which has a policy with a credential: nothing of it leaves, and nothing comes back.
// Run by spoofing.long.test.ts in a network namespace of its own.
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { missingPrivileges } from '../../../plugins/networking/privileges.ts'
import { arp, BROADCAST, ethernet, tcpSyn, udp, type TcpFields } from '../../plugins/networking/frames.ts'
import { API, HOST, STRANGER } from './far/contract.ts'
import { addGuest, attempt, fetchFrom, mediated, mediates, setScene, type Guest, type Mode, type Scene } from './scene.ts'

interface Pair { readonly scene: Scene, readonly victim: Guest, readonly attacker: Guest, readonly device: string, readonly gatewayMac: string }

/** what proves that packets would have come through */
const MARKER_PORT = 7777
/** for what is dropped on the way: nobody tells of it */
const SETTLE_MS = 300

const reason = missingPrivileges()
if (reason === undefined) await main()
else t.plan(0, reason)

async function main (): Promise<void> {
  const scene = await setScene(t)
  const victim = await addGuest(scene, 'victim', mediated('all'))
  for (const mode of ['http_https_only', 'none'] as const) {
    await t.test(`A23: an attacker in mode ${mode}`, { timeout: 900_000 }, async (t) => { await attackAs(t, scene, victim, mode) })
  }
}

async function attackAs (t: Test, scene: Scene, victim: Guest, mode: Mode): Promise<void> {
  const attacker = await addGuest(scene, mode === 'none' ? 'direct' : 'web', mediated(mode, null))
  const device = (await attacker.run('ls /sys/class/net | grep -v lo')).trim()
  const pair = { scene, victim, attacker, device, gatewayMac: await macOf(attacker, scene.gateway) }
  const tests: Readonly<Record<string, (t: Test, pair: Pair) => Promise<void>>> = {
    'the victim\'s address beside its own gets nothing through': extraAddress,
    'frames under the victim\'s address, MAC or both get nothing through': frames,
    'the victim\'s address and MAC in place of its own get nothing through': takenOver,
    'lies by ARP turn nobody\'s packets to it': lies
  }
  for (const [name, run] of Object.entries(tests)) {
    await t.test(name, async (t) => {
      await scene.far.forget()
      await run(t, pair)
      await unharmed(t, pair, mode)
    })
  }
  await scene.server.sdk.instances.delete(attacker.id)
}

/** What has arrived and is none of the victim's, whose connections are kept by the proxy for its next request. */
async function strays ({ far }: Scene): Promise<string[]> {
  return (await far.arrived()).filter((line) => line !== `tcp ${API.address}:443` && line !== `from ${HOST}`)
}

async function macOf (guest: Guest, address: string): Promise<string> {
  const mac = /lladdr ([0-9a-f:]{17})/.exec(await guest.run(`probe dns ${address} 1 a.test > /dev/null; ip neigh show ${address}`))?.[1]
  if (mac === undefined) throw new Error(`the guest does not know the MAC of ${address}`)
  return mac
}

/** The victim goes on with its own policy, and its log has nothing but its own requests. */
async function unharmed (t: Test, { scene, victim, attacker }: Pair, mode: Mode): Promise<void> {
  await mediates(t, scene, victim, 'the victim goes on')
  const seen = await scene.far.seen()
  t.notOk(seen.some(({ url }) => url.includes('attack')), 'no request under its name')
  const log = JSON.stringify(await scene.server.api.call('GET', `/instances/${victim.id}/egress?limit=1000`))
  t.notMatch(log, /attack/, 'nor in its log')
  if (mode === 'none') return
  t.equal(await fetchFrom(attacker, `https://${API.host}/own-${mode}`), `hello from ${API.host}`, 'the attacker as itself still gets through')
  t.equal((await scene.far.seen()).find(({ url }) => url === `/own-${mode}`)?.authorization, undefined, 'without the victim\'s credential')
}

async function extraAddress (t: Test, { scene, attacker, victim, device }: Pair): Promise<void> {
  await attacker.run(`ip addr add ${victim.ip}/32 dev ${device}`)
  const targets = [`${STRANGER}:443`, `${API.address}:80`, `${STRANGER}:22`, `${scene.gateway}:53`]
  for (const { target, outcome } of await attempt(attacker, 'tcp', targets, victim.ip)) t.equal(outcome, 'silence', `TCP ${target}`)
  for (const { target, outcome } of await attempt(attacker, 'udp', [`${STRANGER}:123`, `${scene.gateway}:53`], victim.ip)) t.equal(outcome, 'silence', `UDP ${target}`)
  t.match(await attacker.run(`curl -sS -m 3 --interface ${victim.ip} http://${API.address}/attack`), /timed out|timeout/i)
  await attacker.run(`ip addr del ${victim.ip}/32 dev ${device}`)
  t.same(await strays(scene), [])
}

async function frames (t: Test, { scene, attacker, victim, device, gatewayMac }: Pair): Promise<void> {
  const syn = (changes: Partial<TcpFields>): Buffer => tcpSyn({ source: victim.ip, destination: STRANGER, port: MARKER_PORT, ...changes })
  const datagram = (source: string): Buffer => udp({ source, destination: STRANGER, port: MARKER_PORT, text: 'attack' })
  const forged = [attacker.mac, victim.mac, gatewayMac].flatMap((from) => [syn({}), syn({ port: 443 }), datagram(victim.ip), datagram(scene.gateway), datagram(HOST), datagram('8.8.8.8')].map((payload) => ethernet({ to: gatewayMac, from, payload })))
  t.equal((await attacker.run(`probe frames ${device} ${forged.map((frame) => frame.toString('hex')).join(' ')}`)).trim(), String(forged.length), 'all of them were put on the wire')
  await delay(SETTLE_MS)
  t.same(await strays(scene), [])
}

async function takenOver (t: Test, { scene, attacker, victim, device }: Pair): Promise<void> {
  const become = (ip: string, mac: string): string => `ip link set ${device} down; ip addr flush dev ${device}; ip link set ${device} address ${mac}; ip addr add ${ip}/24 dev ${device}; ip link set ${device} up; ip route add default via ${scene.gateway}`
  for (const [ip, mac] of [[victim.ip, victim.mac], [victim.ip, attacker.mac], [attacker.ip, victim.mac]] as const) {
    t.match(await attacker.run(`${become(ip, mac)}; ip addr show dev ${device}`), mac, `as ${ip} with ${mac}`)
    for (const { target, outcome } of await attempt(attacker, 'tcp', [`${STRANGER}:443`, `${API.address}:80`, `${STRANGER}:22`])) t.ok(['silence', 'EHOSTUNREACH'].includes(outcome), `${target}: ${outcome}`)
  }
  await attacker.run(become(attacker.ip, attacker.mac))
  t.same(await strays(scene), [])
}

async function lies (t: Test, { scene, attacker, victim, device, gatewayMac }: Pair): Promise<void> {
  const before = await victim.run(`ip neigh show ${scene.gateway}`)
  const lie = (to: string, fields: Parameters<typeof arp>[0]): Buffer => ethernet({ to, from: attacker.mac, type: 0x0806, payload: arp(fields) })
  const told = [
    lie(gatewayMac, { operation: 2, mac: attacker.mac, ip: victim.ip, targetIp: scene.gateway }),
    lie(gatewayMac, { operation: 1, mac: attacker.mac, ip: victim.ip, targetIp: scene.gateway }),
    lie(BROADCAST, { operation: 2, mac: attacker.mac, ip: scene.gateway, targetIp: victim.ip }),
    lie(victim.mac, { operation: 2, mac: attacker.mac, ip: scene.gateway, targetIp: victim.ip })
  ]
  t.equal((await attacker.run(`probe frames ${device} ${told.map((frame) => frame.toString('hex')).join(' ')}`)).trim(), String(told.length))
  await delay(SETTLE_MS)
  const mac = (line: string): string | undefined => /lladdr (\S+)/.exec(line)?.[1]
  t.equal(mac(await victim.run(`ip neigh show ${scene.gateway}`)), mac(before), 'the victim knows the gateway as before')
}
