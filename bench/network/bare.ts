// The other side: the VMM of an instance, started once more by hand on a TAP and a bridge with nothing around them: no rules, no queues, no routes. The outside is as far away as that
// of the server's "host": one pair of devices.
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { pathsOf } from '../../plugins/instances/folder/paths.ts'
import type { Berth } from '../berth.ts'
import { bootByHand, workloadOf, type RawVm } from '../raw-boot.ts'
import { vmmOf } from '../vmm.ts'

const bridge = 'bridge'
const tap = 'tap'
const uplink = 'wan'
const guestAddress = '10.99.0.2/24'

/** address of the outside */
export const bareAddress = '10.99.0.1'

/** Makes TAP and bridge in the namespace of that name, and connects the bridge to another namespace like a cable. */
export async function makeBareNetwork (commands: HostCommands, namespace: string, outside: string): Promise<void> {
  await commands.run('ip', ['-n', namespace, '-batch', '-'], {
    input: [
      `link add ${bridge} type bridge`, `link set dev ${bridge} up`, `link add ${uplink} type veth peer name ${uplink} netns ${outside}`, `tuntap add dev ${tap} mode tap`,
      ...[tap, uplink].flatMap(device => [`link set dev ${device} master ${bridge}`, `link set dev ${device} up`]), ''
    ].join('\n')
  })
  await commands.run('ip', ['-n', outside, '-batch', '-'], { input: `link set dev lo up\naddress add ${bareAddress}/24 dev ${uplink}\nlink set dev ${uplink} up\n` })
}

export interface BareOptions {
  readonly commands: HostCommands
  readonly berth: Berth
  /** a running instance, whose VMM's command line is used */
  readonly model: string
  readonly folder: string
  /** name of the network namespace */
  readonly namespace: string
  readonly argv: readonly string[]
}

/** Boots the guest there and resolves when it has printed its first line. */
export async function bootOnBareNetwork ({ commands, berth, model, folder, namespace, argv }: BareOptions): Promise<RawVm> {
  const { directory } = pathsOf(berth.server.dataDir, model)
  const line = (await vmmOf(directory)).argv
  const mac = line.map(word => /^virtio-net-pci,.*mac=([0-9a-f:]+)/.exec(word)?.[1]).find(found => found !== undefined)
  if (mac === undefined) throw new Error('the VMM has no network device')
  return await bootByHand({
    argv: line.map(word => word.replace(/^(tap,.*ifname=)[^,]+/, `$1${tap}`)),
    directory,
    commands,
    folder: join(folder, 'bare'),
    name: 'bare',
    workload: { ...workloadOf(argv), network: { mac, address: guestAddress, gateway: bareAddress, dns: [] } },
    namespace: `/run/netns/${namespace}`
  })
}
