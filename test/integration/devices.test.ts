// A real card in a real machine, without special hardware: the host is itself a machine, with an emulated IOMMU. devices/inside.ts is what runs on it.
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { busyboxImage, push } from '../helpers/images.ts'
import { runScript } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'
import { runOnHost } from './devices/host.ts'

const TIMEOUT_MS = 360_000
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
const STEPS = [
  'the card is listed with its driver',
  'an unknown address is not found',
  'a group with a second device is refused',
  'the card is registered',
  'a crash between bind and launch is put right',
  'an instance gets the card',
  'the guest sees it',
  'it is the instance\'s alone',
  'after the delete it has its driver again'
]

interface Line { readonly step?: string, readonly detail?: unknown, readonly seconds?: number, readonly done?: boolean }

t.setTimeout(TIMEOUT_MS + 120_000)

t.test('a card of the host becomes an instance\'s, and the host\'s again', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-devices-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const image = await prepare(t, join(folder, 'share/berth'))
  const inside = fileURLToPath(new URL('devices/inside.js', import.meta.url))
  const console = await runOnHost({
    folder,
    timeoutMs: TIMEOUT_MS,
    devices: CARDS,
    script: `#!/bin/sh
busybox modprobe -a vfio-pci vfio_iommu_type1 e1000e 8139too
ip link set lo up || busybox ip link set lo up
echo begun after $(cut -d' ' -f1 /proc/uptime) s
${process.execPath} ${inside} /run/share/report ${CARD} ${GROUPED} ${image}
`
  })
  const report = await readFile(join(folder, 'share/report'), 'utf8').catch(() => '')
  const lines: readonly Line[] = report.trim().split('\n').filter((line) => line !== '').map((line) => JSON.parse(line))
  for (const { step, seconds } of lines) if (step !== undefined) t.comment(`${seconds ?? 0} s: ${step}`)
  t.same(lines.flatMap(({ step }) => step ?? []), STEPS)
  if (!t.match(lines.at(-1), { done: true })) t.comment(`${report}\n${console.slice(-6000)}`)
})

/** Makes a server's folder here, with the guests' system and an image, and leaves it at `place`: on the other host, that would take minutes. */
async function prepare (t: Test, place: string): Promise<string> {
  const server = await startTestServer(t)
  const image = await push(server, await busyboxImage(), 'devices/busybox:latest')
  const { instance } = await runScript(server, image, 'true', { skip_kernel_headers: true })
  t.equal(instance.exit_code, 0)
  await server.stop()
  await cp(server.folder, place, { recursive: true, filter: (source) => !basename(source).startsWith('headers-') })
  return image
}
