// What the host's kernel tells of its way out, in folders that look like those of a kernel.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { uplinkRate } from '../../../plugins/resources/uplink.ts'
import { testFolder } from '../../helpers/folder.ts'

const HEADER = 'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n'

async function host (root: string, routes: string, speeds: Readonly<Record<string, string>>): Promise<string> {
  await mkdir(join(root, 'proc/net'), { recursive: true })
  await writeFile(join(root, 'proc/net/route'), HEADER + routes)
  for (const [device, speed] of Object.entries(speeds)) {
    await mkdir(join(root, 'sys/class/net', device), { recursive: true })
    await writeFile(join(root, 'sys/class/net', device, 'speed'), `${speed}\n`)
  }
  return root
}

t.test('the speed is that of the configured interface, or of the default route\'s', async (t) => {
  const root = await host(testFolder(t), 'eth1\t0000000A\t00000000\t0001\neth0\t00000000\t010200C0\t0003\n', { eth0: '10000', eth1: '1000', down: '-1', long: '4294967295' })
  t.same(await uplinkRate('auto', root), { bytesPerSecond: 1_250_000_000 })
  t.same(await uplinkRate('eth1', root), { bytesPerSecond: 125_000_000 })
  t.same(await uplinkRate('down', root), { reason: 'down tells no speed; plugins.networking.config.bandwidth can say it' })
  t.match(await uplinkRate('long', root), { reason: /^long tells no speed/ })
  t.match(await uplinkRate('none', root), { reason: /uplink is none/ })
  t.match(await uplinkRate(undefined, root), { reason: 'the plugin networking does not run' })
})

t.test('a host without a default route has no rate, and says so', async (t) => {
  t.match(await uplinkRate('auto', await host(testFolder(t), '', {})), { reason: /^the host has no default route; / })
})
