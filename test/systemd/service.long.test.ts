import t from 'tap'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { packageRoot } from '../../core/package-root.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { bootMachine, controllerFor, skipReason, type Machine } from './machine.ts'
import { eventually } from '../helpers/eventually.ts'

const SETUP = fileURLToPath(new URL('../../setup/service/main.js', import.meta.url))
const LOAD = fileURLToPath(new URL('./load.js', import.meta.url))
const SOCKETS = ['berth-egress.socket', 'berth-egress-http.socket', 'berth-egress-https.socket', 'berth-egress-dns.socket', 'berth-egress-dns-udp.socket']
const ROOTS = '/etc/berth/roots.pem'

const SERVER_CONFIG = `
server: { listen: 127.0.0.1:8080 }
plugins:
  guest: { config: { prepare: false } }
  networking: { config: { uplink: none } }
  egress: { config: { proxy: { manage: false, controlSocket: /run/berth-egress/control.sock } } }
`

/** A plugin that is another one in a program without the mark `older`: with one more migration, and a start that fails. */
const AGING = {
  'package.json': '{"type":"module"}',
  'plugin.js': `import { existsSync } from 'node:fs'
const isOlder = existsSync('/usr/lib/berth/older')
export const plugin = {
  manifest: { id: 'aging', provides: [], requires: [], config: { type: 'object', additionalProperties: false }, migrations: new URL(isOlder ? './older/' : './newer/', import.meta.url) },
  create () { if (!isOlder) throw new Error('this version does not come up'); return {} }
}`,
  'older/0001-first.js': 'export async function up (db) { await db.schema.createTable("aging_first", table => { table.string("id") }) }\nexport async function down () {}',
  'newer/0002-second.js': 'export async function up (db) { await db.schema.createTable("aging_second", table => { table.string("id") }) }\nexport async function down () {}'
}

/** The file that is installed, with what the test's world needs. */
const PROXY_CONFIG = readFileSync(`${packageRoot}/systemd/etc/egress.yaml`, 'utf8')
  .replace(/servers: .*/, 'servers: [ PLACE ]') + `roots: [ ${ROOTS} ]\nallowPrivate: [ 127.9.0.100 ]\n`

t.test('on a real systemd', { skip: await skipReason() || skipWithout('egress') }, async (t) => {
  const controller = await controllerFor(t)
  const machine = await bootMachine(t)
  const install = async () => await machine.try(process.execPath, SETUP, 'install')
  const before = await listing(machine)

  await t.test('a first installation whose service does not come up leaves nothing behind', async (t) => {
    await machine.write('/etc/berth/egress.yaml', 'listen: {}\n')
    const { code, stdout, stderr } = await install()
    t.equal(code, 1)
    t.match(stderr, /the configuration cannot be used/)
    t.match(stdout, /everything goes back/)
    await machine.run('rm', '-r', '/etc/berth')
    t.same(await listing(machine), before)
    t.equal((await machine.try('getent', 'passwd', 'berth-egress')).code, 2)
  })

  await t.test('a configuration that lets the server manage the proxy is refused before anything is changed', async (t) => {
    await machine.write('/etc/berth/berth.yaml', 'plugins: {}\n')
    const { code, stderr } = await install()
    t.equal(code, 1)
    t.match(stderr, /manage: false/)
    await machine.run('rm', '-r', '/etc/berth')
    t.same(await listing(machine), before)
  })

  await t.test('install-service brings server, proxy and sockets up, in the order that the units say', async (t) => {
    await machine.write('/etc/berth/berth.yaml', SERVER_CONFIG)
    const { code, stdout, stderr } = await install()
    t.equal(code, 0, stdout + stderr)
    for (const unit of ['berth.service', 'berth-egress.service', 'berth-network.service', ...SOCKETS]) t.equal(await machine.show(unit, 'ActiveState'), 'active', unit)
    t.match(await get(machine, { port: 8080, path: '/health' }), /ok/)
    const listening = await machine.run('nsenter', '--net=/run/netns/berth', 'ss', '--listening', '--numeric', '--no-header', '--tcp')
    for (const port of [18_080, 18_443]) t.match(listening, new RegExp(`^LISTEN +\\d+ +\\d+ +10\\.100\\.0\\.1:${port} `, 'm'), 'the server can see that somebody listens there')
    t.equal((await machine.try('journalctl', '--quiet', '--grep', 'ordering cycle|Found left-over|deprecated')).stdout, '')
  })

  await t.test('check-config checks both files, and a server that may load no module may have systemd load one', async (t) => {
    t.match(await machine.run('/usr/bin/berth', 'check-config'), /^\/etc\/berth\/berth\.yaml: OK\n\/etc\/berth\/egress\.yaml: OK$/m)
    const held = (await machine.run('cat', '/usr/lib/systemd/system/berth.service')).split('\n').filter(line => /^(CapabilityBoundingSet|NoNewPrivileges|Restrict\w+|SystemCall\w+)=/.test(line))
    t.ok(held.length > 5)
    // A module that does not exist: a real one would be loaded into the kernel of this host.
    await machine.write('/run/systemd/system/as-the-server.service', ['[Service]', 'Type=oneshot', ...held, 'ExecStart=systemctl --no-ask-password start modprobe@berth_no_such_module.service', ''].join('\n'))
    await machine.run('systemctl', 'daemon-reload')
    const { code, stderr } = await machine.try('systemctl', 'start', 'as-the-server.service')
    t.equal(code, 0, stderr)
    t.match(await machine.log('modprobe@berth_no_such_module.service'), /Finished/)
    await machine.run('rm', '/run/systemd/system/as-the-server.service')
    await machine.run('systemctl', 'daemon-reload')
  })

  await t.test('the proxy has a user of its own, no capability and no way around its rules; its socket is root\'s alone', async (t) => {
    const status = await machine.run('cat', `/proc/${await machine.show('berth-egress.service', 'MainPID')}/status`)
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) t.match(status, new RegExp(`^${set}:\\t0+$`, 'm'))
    t.match(status, /^NoNewPrivs:\t1$/m)
    t.match(status, /^Seccomp:\t2$/m)
    t.notMatch(status, /^Uid:.*\b0\b/m)
    t.equal((await machine.run('stat', '--format=%U %a', '/run/berth-egress', '/run/berth-egress/control.sock', '/var/lib/berth', '/var/lib/berth-egress', '/var/lib/berth-egress/ca/ca.key', '/etc/berth/egress.yaml')).trim(),
      'root 700\nroot 600\nroot 711\nberth-egress 700\nberth-egress 600\nroot 644')
  })

  await t.test('a second installation changes nothing, and restarts nothing', async (t) => {
    const pids = [await machine.show('berth.service', 'MainPID'), await machine.show('berth-egress.service', 'MainPID')]
    const files = await listing(machine)
    const { code, stdout } = await install()
    t.equal(code, 0)
    t.match(stdout, /nothing changed/)
    t.same(await listing(machine), files)
    t.same([await machine.show('berth.service', 'MainPID'), await machine.show('berth-egress.service', 'MainPID')], pids)
  })

  await t.test('what outlives the server does: its restart leaves the proxy, the namespace and the forwarder alone', async (t) => {
    const forwarder = async () => (await machine.run('pgrep', '-x', 'dnsmasq')).trim()
    const [pid, proxy, dns] = [await machine.show('berth.service', 'MainPID'), await machine.show('berth-egress.service', 'MainPID'), await forwarder()]
    await machine.run('systemctl', 'restart', 'berth.service')
    t.not(await machine.show('berth.service', 'MainPID'), pid)
    t.equal(await machine.show('berth-egress.service', 'MainPID'), proxy)
    t.equal(await forwarder(), dns)
    await machine.run('systemctl', 'kill', '--signal=KILL', '--kill-who=main', 'berth.service')
    while (await machine.show('berth.service', 'SubState') !== 'running' || await machine.show('berth.service', 'NRestarts') !== '1') await delay(100)
    t.equal(await machine.show('berth-egress.service', 'MainPID'), proxy)
    t.equal(await forwarder(), dns)
  })

  await t.test('the server is restarted while VMs with limits run', { skip: controller === undefined && 'no controller of control groups of version 2 is left here' }, async (t) => {
    const group = '/sys/fs/cgroup/system.slice/berth.service'
    const give = async (...folders: string[]): Promise<void> => { for (const folder of folders) await machine.run('sh', '-c', `echo +${controller} > ${folder}/cgroup.subtree_control`) }
    // What the server itself does with the controllers that it knows.
    await machine.run('mkdir', '-p', `${group}/server`, `${group}/berth-test/vm`)
    await machine.run('sh', '-c', `for pid in $(cat ${group}/cgroup.procs); do echo $pid > ${group}/server/cgroup.procs; done`)
    const vm = (await machine.run('sh', '-c', `echo $$ > ${group}/berth-test/vm/cgroup.procs; sleep 1000 > /dev/null 2>&1 & echo $!`)).trim()
    await give('/sys/fs/cgroup', '/sys/fs/cgroup/system.slice', group, `${group}/berth-test`)
    t.match(await machine.run('cat', `${group}/berth-test/vm/cgroup.controllers`), String(controller))
    const pid = await machine.show('berth.service', 'MainPID')
    await machine.run('systemctl', 'restart', 'berth.service')
    t.not(await machine.show('berth.service', 'MainPID'), pid)
    t.equal((await machine.run('cat', `${group}/berth-test/vm/cgroup.procs`)).trim(), vm, 'the VM runs on')
    await machine.run('kill', vm)
    while ((await machine.try('rmdir', `${group}/berth-test/vm`, `${group}/berth-test`)).code !== 0) await delay(20)
  })

  await t.test('a new proxy hears its policy from the server', async (t) => {
    await machine.run('systemctl', 'restart', 'berth-egress.service')
    const isTold = async () => /"revision":\d/.test(await get(machine, { socketPath: '/run/berth-egress/control.sock', path: '/policy' }))
    while (!await isTold()) await delay(100)
    t.pass()
  })

  await t.test('on the inherited sockets the proxy serves HTTP, HTTPS and DNS, and is restarted under load without one refused connection', async (t) => {
    // The server's part is the test's from here on: the proxy goes on without it.
    await machine.run('systemctl', 'stop', 'berth.service')
    const places = await Promise.all(['https', 'http', 'dns'].map(async name => (await machine.show(`berth-egress-${name}.socket`, 'Listen')).split(' ')[0] ?? ''))
    const [gateway = ''] = (places[0] ?? '').split(':')
    t.ok(places.every(place => place.startsWith(`${gateway}:`)))
    const world = await startWorld(t, machine, [ROOTS, gateway, ...places.map(place => place.split(':')[1] ?? ''), '/run/berth-egress/control.sock'])
    await machine.write('/etc/berth/egress.yaml', PROXY_CONFIG.replace('PLACE', world.nameServer))
    await machine.run('systemctl', 'restart', 'berth-egress.service')
    t.equal(await world.ask('allow'), null)
    t.match(await world.ask('plain'), /^HTTP\/1.1 400 /)
    t.match(await world.ask('dns'), /^198\.1[89]\./)
    t.equal(await world.ask('dns-tcp'), 1)
    await world.ask('load')
    const served = async () => (await world.ask('count') as { served: number, failures: string[] })
    const until = async (count: number) => await eventually(`${count} are served`, async () => {
      const now = await served()
      return now.served >= count || now.failures.length > 0
    })
    await until(20)
    for (let restarts = 0; restarts < 3; restarts++) {
      await machine.run('systemctl', 'restart', 'berth-egress.service')
      t.equal(await world.ask('allow'), null)
      await until((await served()).served + 20)
    }
    t.match(await world.ask('count'), { authorization: 'Bearer a-secret-of-a-test' })
    const outcome = await world.ask('stop') as { served: number, failures: string[] }
    t.same(outcome.failures, [])
    t.comment(`${outcome.served} connections, 3 restarts`)
    await machine.run('systemctl', 'start', 'berth.service')
  })

  await t.test('an upgrade that fails goes back to what ran before', async (t) => {
    await machine.run('sh', '-c', 'echo "# changed" >> /usr/lib/systemd/system/berth.service')
    await machine.write('/etc/berth/berth.yaml', `${SERVER_CONFIG}nonsense: true\n`)
    const [files, pid] = [await listing(machine), await machine.show('berth.service', 'MainPID')]
    const { code, stderr } = await install()
    t.equal(code, 1)
    t.match(stderr, /nonsense/)
    t.same(await listing(machine), files)
    t.equal(await machine.show('berth.service', 'MainPID'), pid, 'and the server runs on')
    await machine.write('/etc/berth/berth.yaml', SERVER_CONFIG)
    t.equal((await install()).code, 0)
    t.equal(await machine.show('berth.service', 'ActiveState'), 'active')
    t.equal((await machine.try('tail', '-n', '1', '/usr/lib/systemd/system/berth.service')).stdout.includes('changed'), false)
  })

  await t.test('an upgrade that fails after it has migrated the database gives it back to what ran before', async (t) => {
    await machine.run('mkdir', '-p', '/etc/berth/aging/older', '/etc/berth/aging/newer')
    for (const [path, text] of Object.entries(AGING)) await machine.write(`/etc/berth/aging/${path}`, text)
    await machine.run('cp', '/etc/berth/aging/older/0001-first.js', '/etc/berth/aging/newer')
    await machine.write('/etc/berth/berth.yaml', `${SERVER_CONFIG}  aging: { module: /etc/berth/aging/plugin.js }\n`)
    await machine.run('touch', '/usr/lib/berth/older')
    await machine.run('systemctl', 'restart', 'berth.service')
    const files = await listing(machine)
    const { code, stdout, stderr } = await install()
    t.equal(code, 1)
    t.match(stderr, /this version does not come up/)
    t.notMatch(stdout, /that failed too/)
    t.same(await listing(machine), files)
    t.match(await get(machine, { port: 8080, path: '/health' }), /ok/)
    t.match(await machine.run('/usr/bin/berth', 'restore-database'), /before aging\/0002-second[^]*before copy \d+ was brought back/)
    await machine.write('/etc/berth/berth.yaml', SERVER_CONFIG)
    await machine.run('rm', '-r', '/etc/berth/aging')
    t.equal((await install()).code, 0)
  })

  await t.test('uninstall-service --purge leaves what was there before', async (t) => {
    await machine.run('rm', ROOTS)
    // On a busy host the namespace's own unit takes its time.
    await machine.run('sed', '--in-place', 's/^  down)/&\\n    sleep 15/', '/usr/lib/berth/systemd/network-namespace')
    const { code, stdout, stderr } = await machine.try(process.execPath, SETUP, 'uninstall', '--purge')
    t.equal(code, 0, stdout + stderr)
    t.equal((await machine.try('pgrep', '-x', 'dnsmasq')).code, 1, 'no process is left')
    t.equal((await machine.run('ip', 'netns', 'list')).trim(), '', 'and no namespace')
    t.equal((await machine.try('getent', 'passwd', 'berth-egress')).code, 2)
    t.equal((await machine.run('systemctl', 'list-units', '--all', '--no-legend', 'berth*')).trim(), '')
    await machine.run('rm', '-rf', '/etc/berth')
    t.same(await listing(machine), before)
  })
})

/** Everything that an installation could touch, with modes, owners and sizes. */
async function listing (machine: Machine): Promise<string[]> {
  const folders = ['/etc/berth', '/etc/systemd/system', '/usr/lib/systemd/system', '/usr/lib/sysusers.d', '/usr/lib/tmpfiles.d', '/usr/lib/berth', '/usr/bin']
  const { stdout } = await machine.try('find', ...folders, '-printf', '%p %m %u %s %l\n')
  const others = await machine.run('sh', '-c', 'ls -d /usr/lib/berth* /var/lib/berth* 2>/dev/null || true')
  // A folder's own size depends on what was in it before.
  return [...stdout.split('\n').map(line => line.replace(/^(\S+ 7\d\d \S+) \d+ $/, '$1')), ...others.split('\n')].filter(line => line !== '').sort()
}

/** What a listener of the machine answers. */
async function get (machine: Machine, options: { readonly path: string, readonly port?: number, readonly socketPath?: string }): Promise<string> {
  return await machine.run(process.execPath, '-e', 'require("http").get(JSON.parse(process.argv[1]), answer => answer.pipe(process.stdout))', JSON.stringify(options))
}

/** The program `load.ts` in the machine's namespace of guests. */
async function startWorld (t: Tap, machine: Machine, args: readonly string[]) {
  const child = machine.start(process.execPath, LOAD, ...args)
  t.teardown(async () => {
    const ended = once(child, 'exit')
    child.stdin?.end()
    await ended
  })
  if (child.stdout === null) throw new Error('it has no output')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const answer = async (): Promise<unknown> => JSON.parse(String((await lines.next()).value))
  const nameServer = String(await answer())
  return {
    nameServer,
    async ask (order: string): Promise<unknown> {
      child.stdin?.write(`${order}\n`)
      return await answer()
    }
  }
}

interface Tap { teardown (work: () => unknown): void }
