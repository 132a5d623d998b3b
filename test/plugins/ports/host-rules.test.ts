// The rules that lead to a guest, in a world of namespaces: from the loopback, from the host itself and from outside, for both protocols, and nothing of them after the last port.
import { join } from 'node:path'
import t from 'tap'
import { pino } from 'pino'
import { Type } from 'typebox'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { HostCommandFailed } from '../../../core/process/errors.ts'
import { HostRules } from '../../../plugins/ports/host-rules.ts'
import { plugin } from '../../../plugins/ports/index.ts'
import { noteLink } from '../../../plugins/ports/leftovers.ts'
import { endLeftovers } from '../../../plugins/ports/turned-off.ts'
import type { Direct } from '../../../plugins/ports/rules.ts'
import { authorization, bareApp } from '../../core/bare-app.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'
import { ScriptedHost } from '../instances/scripted.ts'
import { createWorld, skipReason } from '../networking/world.ts'

t.test('a published port leads to the guest from wherever it is called, whatever the guest itself may reach, until it is taken away', { skip: skipReason() }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const network = await world.open({ uplink: 'auto' })
  const address = await network.allocate('web')
  const guest = await world.machine(await network.plug('web', undefined, { vcpus: 1 }, 'all'), address)
  for (const protocol of ['tcp', 'udp'] as const) await guest.ask({ do: 'listen', protocol, port: 80, answer: 'guest' })
  await guest.ask({ do: 'listen', protocol: 'tcp', port: 81, answer: 'closed' })
  const host = await world.agent(world.host)
  const outside = await world.agent(world.outside)
  const { ip } = address
  let ports: Direct[] = (['tcp', 'udp'] as const).flatMap((protocol) => [
    { protocol, address: '0.0.0.0', hostPort: 8080, ip, instancePort: 80 },
    { protocol, address: '127.0.0.1', hostPort: 8081, ip, instancePort: 80 }
  ])
  ports.push({ protocol: 'tcp', address: '0.0.0.0', hostPort: 8082, ip, instancePort: 81 })
  const rules = new HostRules({ commands: world.commands, dataDir: world.folder, network, log: pino({ level: 'silent' }), wanted: () => ports })
  await network.setInbound('web', [{ protocol: 'tcp', port: 80 }, { protocol: 'udp', port: 80 }])
  await Promise.all([rules.apply(), rules.apply()])
  for (const protocol of ['tcp', 'udp'] as const) {
    t.match(await host.ask({ do: 'call', protocol, host: '127.0.0.1', port: 8080 }), /^guest 169\.254\.0\.1/, `${protocol} from the loopback`)
    t.match(await host.ask({ do: 'call', protocol, host: '127.0.0.1', port: 8081 }), /^guest 169\.254\.0\.1/)
    t.match(await host.ask({ do: 'call', protocol, host: '198.51.100.1', port: 8080 }), /^guest 198\.51\.100\.1/, `${protocol} from the host's own address`)
    t.match(await outside.ask({ do: 'call', protocol, host: '198.51.100.1', port: 8080 }), /^guest 198\.51\.100\.2/, `${protocol} from outside, whose address the guest sees`)
  }
  t.notMatch(await outside.ask({ do: 'call', protocol: 'tcp', host: '198.51.100.1', port: 8081, timeoutMs: 1500 }), /^guest/, 'what is the loopback\'s is not open to the outside')
  t.notMatch(await outside.ask({ do: 'call', protocol: 'tcp', host: '198.51.100.1', port: 8082, timeoutMs: 1500 }), /^closed/, 'a port of the guest that is not published is closed to what the host leads there')
  t.notMatch(await guest.ask({ do: 'call', protocol: 'tcp', host: '198.51.100.2', port: 9, timeoutMs: 1500 }), /^outside/, 'the guest gets nowhere by that')

  t.comment('a neighbour that sends the host what is for its loopback, or takes it for a router to the guest, gets no further than by the address of the publication')
  await world.in(world.outside, 'ip', 'route', 'flush', 'table', 'local', 'dev', 'lo')
  await world.in(world.outside, 'sysctl', '-q', '-w', 'net.ipv4.conf.all.route_localnet=1', 'net.ipv4.conf.wan.route_localnet=1')
  for (const to of ['127.0.0.1', ip]) await world.in(world.outside, 'ip', 'route', 'add', to, 'via', '198.51.100.1', 'dev', 'wan', 'src', '198.51.100.2')
  for (const protocol of ['tcp', 'udp'] as const) {
    t.notMatch(await outside.ask({ do: 'call', protocol, host: '127.0.0.1', port: 8081, timeoutMs: 1500 }), /^guest/, `${protocol} to the loopback`)
    t.notMatch(await outside.ask({ do: 'call', protocol, host: ip, port: 80, timeoutMs: 1500 }), /^guest/, `${protocol} to the guest itself`)
    t.match(await outside.ask({ do: 'call', protocol, host: '198.51.100.1', port: 8080 }), /^guest 198\.51\.100\.2/, `${protocol} as published`)
  }
  t.notMatch(await world.in(world.host, 'conntrack', '--dump', '--orig-dst', '127.0.0.1'), /src=198\.51\.100\.2/, 'nothing that came for the loopback was led to a guest')

  ports = []
  await rules.apply()
  await network.setInbound('web', [])
  t.equal(await host.ask({ do: 'call', protocol: 'tcp', host: '127.0.0.1', port: 8080 }), 'ECONNREFUSED')
  t.notMatch(await world.in(world.host, 'nft', 'list', 'tables'), /-ports/)
  t.notMatch(await world.in(world.host, 'conntrack', '--dump', '--reply-src', ip), /src=/, 'no connection is led there any more')

  t.comment('a server that is killed leaves its rules, and the next one sets right what they are to be')
  ports = [{ protocol: 'tcp', address: '0.0.0.0', hostPort: 8080, ip, instancePort: 80 }]
  await network.setInbound('web', [{ protocol: 'tcp', port: 80 }])
  await rules.apply()
  const next = new HostRules({ commands: world.commands, dataDir: world.folder, network, log: pino({ level: 'silent' }), wanted: () => [] })
  t.match(await host.ask({ do: 'call', protocol: 'tcp', host: '127.0.0.1', port: 8080 }), /^guest/)
  await next.takeOver()
  t.equal(await host.ask({ do: 'call', protocol: 'tcp', host: '127.0.0.1', port: 8080 }), 'ECONNREFUSED')

  t.comment('the plugin is turned off: its rules go without the network that they lead to, and who is connected is cut off')
  ports = [{ protocol: 'tcp', address: '0.0.0.0', hostPort: 8080, ip, instancePort: 80 }, { protocol: 'udp', address: '127.0.0.1', hostPort: 8081, ip, instancePort: 80 }]
  await network.setInbound('web', [{ protocol: 'tcp', port: 80 }, { protocol: 'udp', port: 80 }])
  await rules.apply()
  t.match(await host.ask({ do: 'call', protocol: 'tcp', host: '127.0.0.1', port: 8080 }), /^guest/)
  t.match(await host.ask({ do: 'call', protocol: 'udp', host: '127.0.0.1', port: 8081 }), /^guest/)
  t.match(await world.in(world.host, 'conntrack', '--dump', '--reply-src', ip), /src=/, 'there are connections to end')
  for (let round = 0; round < 2; round++) await endLeftovers({ dataDir: world.folder, commands: world.commands })
  t.equal(await host.ask({ do: 'call', protocol: 'tcp', host: '127.0.0.1', port: 8080 }), 'ECONNREFUSED')
  t.notMatch(await world.in(world.host, 'nft', 'list', 'tables'), /-ports/)
  t.notMatch(await world.in(world.host, 'conntrack', '--dump', '--reply-src', ip), /src=/)
})

t.test('without the plugin instances there is no instance to publish for, and the rules of an earlier server go', { skip: skipReason() }, async (t) => {
  const network = new ScriptedHost().connect()
  const networking = definePlugin({ manifest: { id: 'networking', provides: ['network'], requires: [], config: Type.Object({}, { additionalProperties: false }) }, create: () => ({ services: { network } }) })
  const { app, dataDir } = await bareApp(t, {}, { plugins: [networking, plugin] })
  await noteLink(dataDir, 'berth-test-none')
  await app.start({ listen: false })
  for (const [method, url] of [['GET', '/instances/web/ports'], ['POST', '/instances/web/ports'], ['DELETE', '/instances/web/ports/p']] as const) {
    const answer = await app.http.inject({ method, url, headers: authorization, ...method === 'POST' ? { payload: { instance_port: 80 } } : {} })
    t.match(answer, { statusCode: 404 }, method)
    t.match(answer.json(), { code: 'not_found', message: /web/ })
  }
  await eventually('the note of the rules is gone with them', async () => !await isThere(join(dataDir, 'ports/link')), { limitMs: 10_000 })
})

t.test('rules that could not be changed when it was due are behind, lead nobody to a guest that is gone, and are as they should be after the next try', { skip: skipReason() }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const network = await world.open({ uplink: 'auto' })
  const addresses = await Promise.all(['web', 'other'].map(async (id) => await network.allocate(id)))
  const [web = '', other = ''] = addresses.map(({ ip }) => ip)
  const address = addresses[0]
  if (address === undefined) throw new Error('no address')
  const guest = await world.machine(await network.plug('web', undefined, { vcpus: 1 }, 'all'), address)
  await guest.ask({ do: 'listen', protocol: 'tcp', port: 80, answer: 'guest' })
  await network.setInbound('web', [{ protocol: 'tcp', port: 80 }])
  const host = await world.agent(world.host)
  const port = (ip: string, hostPort: number): Direct => ({ protocol: 'tcp', address: '0.0.0.0', hostPort, ip, instancePort: 80 })
  let wanted: readonly Direct[] = [port(web, 8080), port(other, 8081)]
  let isInOrder = true
  let failing: string | undefined
  const commands: HostCommands = {
    ...world.commands, run: async (file, args, options) => {
      if (file === failing) throw new Error(`${file} does not work today`)
      return await world.commands.run(file, args, options)
    }
  }
  const rules = new HostRules({
    commands, dataDir: world.folder, log: pino({ level: 'silent' }), wanted: () => wanted,
    network: { get hostLink () { return network.hostLink }, get hostSide () { return isInOrder ? network.hostSide : undefined } }
  })
  const call = async (): Promise<string> => await host.ask({ do: 'call', protocol: 'tcp', host: '127.0.0.1', port: 8080 })
  const tracked = async (): Promise<string> => await world.in(world.host, 'conntrack', '--dump', '--reply-src', web)
  await rules.apply()
  t.match(await call(), /^guest/)
  t.notOk(rules.isBehind)

  t.comment('the network is being brought in order')
  isInOrder = false
  wanted = [port(web, 8080)]
  await rules.apply()
  t.ok(rules.isBehind)
  t.notMatch(await world.in(world.host, 'nft', 'list', 'tables'), /-ports/)
  t.match(await tracked(), /src=/, 'connections to the guest that is still there go on')
  isInOrder = true
  await rules.apply()
  t.notOk(rules.isBehind)
  t.match(await call(), /^guest/)

  // What is to be taken away needs no network in order.
  for (const [tool, meanwhile] of [['nft', true], ['nft', false], ['conntrack', true], ['conntrack', false]] as const) {
    t.comment(`${tool} fails, and the network is ${meanwhile ? 'in order' : 'being brought in order'} at the next try`)
    wanted = [port(web, 8080)]
    await rules.apply()
    t.match(await call(), /^guest/)
    failing = tool
    wanted = []
    await t.rejects(rules.apply(), { message: `${tool} does not work today` })
    t.ok(rules.isBehind)
    failing = undefined
    isInOrder = meanwhile
    await rules.apply()
    isInOrder = true
    t.notOk(rules.isBehind)
    t.equal(await call(), 'ECONNREFUSED')
    t.notMatch(await tracked(), /src=/, 'no connection is led there any more')
  }

  t.comment('a server that starts cannot set right what another has left')
  for (const [tool, meanwhile] of [['nft', true], ['nft', false]] as const) {
    wanted = [port(web, 8080)]
    await rules.apply()
    const next = new HostRules({
      commands, dataDir: world.folder, log: pino({ level: 'silent' }), wanted: () => [],
      network: { get hostLink () { return network.hostLink }, get hostSide () { return isInOrder ? network.hostSide : undefined } }
    })
    failing = tool
    isInOrder = meanwhile
    await t.rejects(next.takeOver(), { message: `${tool} does not work today` })
    t.ok(next.isBehind)
    failing = undefined
    await next.apply()
    isInOrder = true
    t.notOk(next.isBehind)
    t.equal(await call(), 'ECONNREFUSED')
    // It is to set them anew.
    wanted = []
    await rules.apply()
  }
})

t.test('a connection that ends by itself while a port is taken away does not keep the others from being ended, nor the caller from an answer', async (t) => {
  const GONE = 'conntrack v1.4.7 (conntrack-tools): Operation failed: such conntrack doesn\'t exist'
  const answers = [GONE, GONE, undefined]
  let calls = 0
  const commands: HostCommands = {
    run: async (file) => {
      const stderr = file === 'conntrack' ? answers[calls++] : undefined
      if (stderr !== undefined) throw new HostCommandFailed({ command: 'conntrack', reason: 'exit', exitCode: 1, signal: undefined, stderr }, 'exited with 1')
      return await Promise.resolve({ stdout: '', stderr: '' })
    }
  }
  let wanted: readonly Direct[] = [{ protocol: 'tcp', address: '0.0.0.0', hostPort: 8080, ip: '10.0.0.2', instancePort: 80 }]
  const network = { hostLink: 'link0', hostSide: { link: 'link0', device: 'eth0', loopbackAs: '169.254.0.1' } }
  const rules = new HostRules({ commands, dataDir: testFolder(t), network, log: pino({ level: 'silent' }), wanted: () => wanted })
  await rules.apply()
  wanted = []
  await rules.apply()
  t.equal(calls, 3)
  t.notOk(rules.isBehind)
})

t.test('rules that somebody removes from the host, as a restart of its firewall does, and those for an interface that leads out no more, are behind and made again', { skip: skipReason() }, async (t) => {
  const world = await createWorld(t)
  await world.addOutside()
  const network = await world.open({ uplink: 'auto' })
  const address = await network.allocate('web')
  const guest = await world.machine(await network.plug('web', undefined, { vcpus: 1 }, 'all'), address)
  await guest.ask({ do: 'listen', protocol: 'tcp', port: 80, answer: 'guest' })
  await network.setInbound('web', [{ protocol: 'tcp', port: 80 }])
  const host = await world.agent(world.host)
  const port: Direct = { protocol: 'tcp', address: '0.0.0.0', hostPort: 8080, ip: address.ip, instancePort: 80 }
  let wanted: readonly Direct[] = [port]
  let device = network.hostSide?.device ?? ''
  const lines: string[] = []
  const rules = new HostRules({
    commands: world.commands, dataDir: world.folder, log: pino({ level: 'warn' }, { write: (line) => { lines.push(line) } }), wanted: () => wanted,
    network: { get hostLink () { return network.hostLink }, get hostSide () { return network.hostSide === undefined ? undefined : { ...network.hostSide, device } } }
  })
  const call = async (): Promise<string> => await host.ask({ do: 'call', protocol: 'tcp', host: '127.0.0.1', port: 8080 })
  await rules.check()
  t.notOk(rules.isBehind, 'where there are none, none are missing')
  await rules.apply()
  await rules.check()
  t.notOk(rules.isBehind)
  t.ok(rules.leadsTo(port))
  t.same(lines, [])
  for (const words of [['flush', 'ruleset'], ['flush', 'table', 'ip', `${network.hostLink ?? ''}-ports`]]) {
    await world.in(world.host, 'nft', ...words)
    t.equal(await call(), 'ECONNREFUSED')
    await rules.check()
    t.ok(rules.isBehind)
    t.notOk(rules.leadsTo(port), 'what comes meanwhile is relayed')
    await rules.apply()
    t.notOk(rules.isBehind)
    t.match(await call(), /^guest/)
  }
  t.match(lines.join(''), /rules for published ports/)

  device = 'elsewhere'
  await rules.check()
  await rules.apply()
  t.match(await world.in(world.host, 'nft', 'list', 'ruleset'), /iifname "elsewhere"/)

  t.comment('a port is taken away while the rules are gone: who is connected by them is cut off all the same')
  t.match(await world.in(world.host, 'conntrack', '--dump', '--reply-src', address.ip), /src=/)
  await world.in(world.host, 'nft', 'flush', 'ruleset')
  await rules.check()
  wanted = []
  await rules.apply()
  t.notMatch(await world.in(world.host, 'conntrack', '--dump', '--reply-src', address.ip), /src=/)
})
