// What a VMM's command begins with, and whether packets are left to the host's kernel.
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { vmmCommand } from '../../../core/library/vmm/command.ts'
import { explainTap } from '../../../plugins/hypervisor-qemu/network.ts'
import { createVhostProbe } from '../../../plugins/hypervisor-qemu/vhost.ts'
import { commands } from './machine.ts'

const network = { namespace: '/run/netns/a b', tap: 'tap1', mac: '02:00:00:00:00:01' }
const identity = { uid: 61_005, gid: 61_006 }
const command = async (spec: Parameters<typeof vmmCommand>[3]): Promise<string> => (await vmmCommand('qemu', ['-x'], 'tcg', spec)).join('|')

await t.test('the namespace is entered before privileges are dropped, and rights are dropped wherever there is one', async (t) => {
  const dropped = '--no-new-privs|--inh-caps=-all|--bounding-set=-all|qemu|-x'
  const user = 'setpriv|--reuid=61005|--regid=61006|--clear-groups'
  t.equal(await command({}), 'prlimit|--core=0:0|qemu|-x')
  t.equal(await command({ identity }), `prlimit|--core=0:0|${user}|${dropped}`)
  t.equal(await command({ network }), `nsenter|--net=/run/netns/a b|prlimit|--core=0:0|setpriv|${dropped}`)
  t.equal(await command({ identity, network }), `nsenter|--net=/run/netns/a b|prlimit|--core=0:0|${user}|${dropped}`)
  const devices = [{ sysfs: '/sys/x' }]
  t.equal(await command({ devices, memoryBytes: 2 ** 20, hotplugBytes: 2 ** 21 }), `prlimit|--core=0:0|--memlock=${2 ** 30 + 2 ** 20 + 2 ** 21}:${2 ** 30 + 2 ** 20 + 2 ** 21}|qemu|-x`, 'memory that devices write to is locked')
  t.match(await command({ network, memory: { path: '/m', sharing: 'shared' } }), /^flock\|.*\|\/m\|nsenter\|/)
})

await t.test('what becomes the VMM by itself has the capabilities for that, and gets no others', async (t) => {
  const words = await vmmCommand('jailer', ['-x'], 'kvm', { identity, network }, ['setuid', 'mknod'])
  t.equal(words.join('|'), 'nsenter|--net=/run/netns/a b|prlimit|--core=0:0|setpriv|--no-new-privs|--inh-caps=-all|--bounding-set=-all,+setuid,+mknod|jailer|-x')
})

const skip = process.getuid?.() === 0 ? false : 'only root can ask as another user'
await t.test('vhost-net is used when the VM\'s user can open it, and the device is as it was', { skip }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-vhost-'))
  t.teardown(() => rm(folder, { recursive: true }))
  // as /dev is
  await chmod(folder, 0o755)
  const device = join(folder, 'vhost-net')
  const ask = async (mode: number): Promise<boolean[]> => {
    await chmod(device, mode)
    const usable = createVhostProbe(commands, device)
    return [await usable({ network, identity: { uid: 65_534, gid: 65_534 } }), await usable({ network })]
  }
  t.equal(await createVhostProbe(commands, device)({ network }), false, 'without a device')
  await writeFile(device, 'content')
  t.same(await ask(0o600), [false, true])
  t.same(await ask(0o666), [true, true])
  t.equal(await readFile(device, 'utf8'), 'content')
})

await t.test('what QEMU says of a TAP is explained, and nothing else', async (t) => {
  const words = (why: string, tap = 'tap1'): string => `qemu: -netdev tap: could not configure /dev/net/tun (${tap}): ${why}`
  t.match(explainTap(words('Operation not permitted'), network), /namespace \/run\/netns\/a b has no TAP tap1 for/)
  t.match(explainTap(words('Device or resource busy'), network), /another process uses the TAP tap1/)
  t.equal(explainTap(words('Operation not permitted', 'tap10'), network), '')
  t.equal(explainTap('qemu: could not load kernel', network), '')
})
