// A real card in a real machine, without special hardware: the host is itself a machine, with an emulated IOMMU. devices/inside.ts is what runs on it.
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { hasCode } from '../../core/errors/system-code.ts'
import { runScript } from '../helpers/machine.ts'
import { readSdkModels } from '../helpers/sdk-models.ts'
import { runOnHost } from '../emulated-host/host.ts'
import { lastLines } from '../emulated-host/last-lines.ts'
import { prepareServer } from '../emulated-host/prepared-server.ts'
import { CARD_ROW, NOT_NOW, rows } from '../emulated-host/rows.ts'

// Everything is emulated: some 2 minutes on two processors that nobody else wants, and many times that on others.
const TIMEOUT_MS = 1_300_000
const INSIDE_MS = 1_240_000
// The card stands alone behind its port; the two others behind one bridge cannot be told apart by the IOMMU.
const CARD = '0000:01:00.0'
const GROUPED = '0000:03:01.0'
const CARDS = [
  '-device', 'pcie-root-port,id=port1,bus=pcie.0,addr=0x10,chassis=1,slot=1',
  '-device', 'pcie-root-port,id=port2,bus=pcie.0,addr=0x11,chassis=2,slot=2',
  '-netdev', 'user,id=net1,restrict=on',
  '-device', 'e1000e,bus=port1,netdev=net1,romfile=',
  '-device', 'pcie-pci-bridge,id=bridge,bus=port2',
  '-netdev', 'user,id=net2,restrict=on', '-netdev', 'user,id=net3,restrict=on',
  '-device', 'rtl8139,bus=bridge,addr=1,netdev=net2,romfile=', '-device', 'rtl8139,bus=bridge,addr=2,netdev=net3,romfile='
]
const FINDINGS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['before, the card has its driver', 'e1000e'],
  ['the card is listed with its driver', '8086:10d3 e1000e'],
  ['a card that shares its group is listed', false],
  ['an unknown address is refused', '404 device_not_found'],
  ['a card that shares its group is refused', '409 device_not_assignable'],
  ['the command lists the card', true],
  ['the card is registered, by the command', 'card\n'],
  ['registered, it has its driver still', 'e1000e'],
  ['after a crash between bind and launch the card is bound', 'vfio-pci'],
  ['after a crash between bind and launch there is no VMM', 0],
  ['the next server has no instance', []],
  ['the next server has given the card back', 'e1000e'],
  ['the next server knows that nobody has it', null],
  ['an instance is created with the card', 'string'],
  ['while it has the card, that is bound', 'vfio-pci'],
  ['its VMM has KVM', true],
  ['its VMM is not root', true],
  ['the file of the group belongs to its VMM', true],
  ['the guest runs', 'Running'],
  ['the guest sees the card by vendor and device', '0x8086:0x10d3'],
  ['the card is said to be the instance\'s', true],
  ['the card is said to be bound', true],
  ['the command says whose the card is', true],
  ['the command does not take it away now', '5'],
  ['unregistering it now is refused', '409 in_use'],
  ['a second instance with it is refused', '409 device_in_use'],
  ['standby of its instance is refused', '409 invalid_state'],
  ['after that it is bound as before', 'vfio-pci'],
  ['after the delete the card has its driver again', 'e1000e'],
  ['after the delete there is no VMM', 0],
  ['after the delete nobody has it', null],
  ['after the delete it is not bound', false],
  ['the card is unregistered, by the command', 'card\n'],
  ['unregistered, it is not found', '404 not_found'],
  ['unregistered by the SDK, it is not listed', []]
])
/** whose answers, with a card, are held to the official SDK's types */
const SDK_METHODS = ['devices.listAvailable', 'devices.create', 'devices.list', 'devices.retrieve']

interface Finding { readonly name: string, readonly value: unknown, readonly seconds: number }

t.setTimeout(TIMEOUT_MS + 100_000)

t.test('a card of the host becomes an instance\'s, and the host\'s again', { skip: rows.includes(CARD_ROW) ? false : NOT_NOW }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-devices-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const share = join(folder, 'share')
  const data = join(folder, 'data')
  const image = await prepareServer(t, data, 'devices', async (server, image) => {
    const { instance } = await runScript(server, image, 'true', { skip_kernel_headers: true })
    t.equal(instance.exit_code, 0, 'the image runs')
  })
  const inside = fileURLToPath(new URL('devices/inside.js', import.meta.url))
  const { ended, console } = await runOnHost({
    folder,
    data,
    timeoutMs: TIMEOUT_MS,
    iommu: true,
    devices: CARDS,
    script: `#!/bin/sh
modprobe -a e1000e 8139too kvm_amd
until [ -e /dev/kvm ]; do sleep 0.2; done
chmod 666 /dev/kvm
busybox ip link set lo up
echo the host is up after $(cut -d' ' -f1 /proc/uptime) s
exec ${process.execPath} ${inside} /run/share ${CARD} ${GROUPED} ${image} ${INSIDE_MS}
`
  })
  const found = (await textOf(join(share, 'report'))).split('\n').filter((line) => line !== '').map((line): Finding => JSON.parse(line))
  for (const [name, wanted] of FINDINGS) {
    const finding = found.find((candidate) => candidate.name === name)
    if (finding === undefined) {
      t.fail(`it has not come so far that ${name}`)
      break
    }
    t.strictSame(finding.value, wanted, `${name}: ${JSON.stringify(wanted)} (${finding.seconds} s)`)
  }
  const models = readSdkModels()
  for (const method of SDK_METHODS) {
    const { value } = found.find(({ name }) => name === method) ?? {}
    t.same(models.problems(method, value), [], `${method} answers as the SDK declares it`)
    t.match(JSON.stringify(value), CARD, `${method} tells of the card`)
  }
  if (t.passing()) return
  t.comment(`QEMU ${ended}; the console's last lines:\n${lastLines(console, 40)}`)
  for (const { name, value } of found) if (!FINDINGS.has(name) && !SDK_METHODS.includes(name)) t.comment(`${name}: ${Array.isArray(value) ? value.join('\n') : String(value)}`)
  t.comment(`the server's last lines:\n${lastLines(await textOf(join(share, 'server.log')), 40)}`)
})

/** What a file holds; nothing when it was never written. */
async function textOf (path: string): Promise<string> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    if (hasCode(error, 'ENOENT')) return ''
    throw error
  })
}
