// The namespace with its bridge: makes, checks and removes it. Each step can be repeated, and none touches the host's own network.
import { chmod, rm, stat, statfs } from 'node:fs/promises'
import type { HostCommands } from '../../core/contracts/services.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import { NetworkUnusable } from './errors.ts'
import { readLinks, type Link } from './links.ts'
import { BRIDGE } from './names.ts'
import type { Settings } from './settings.ts'
import type { NetworkTools } from './tools.ts'

const TUN_DEVICE = '/dev/net/tun'
const NSFS_MAGIC = 0x6e736673

const NO_IPV6 = { 'net/ipv6/conf/all/disable_ipv6': 1, 'net/ipv6/conf/default/disable_ipv6': 1 } as const

const IPV4 = Object.fromEntries(['all', 'default'].flatMap((scope) => Object.entries({
  rp_filter: 1, accept_redirects: 0, send_redirects: 0, secure_redirects: 0, accept_source_route: 0, arp_ignore: 1, arp_announce: 2
}).map(([name, value]) => [`net/ipv4/conf/${scope}/${name}`, value])))

const FORWARDING = { 'net/ipv4/ip_forward': 1 } as const

// Strict about how a connection begins and lenient about later packets: a packet is invalid only when its connection is unknown
// (for example one of a woken guest's earlier connections), and then a reset as the answer harms nobody.
const TRACKING = { 'net/netfilter/nf_conntrack_tcp_loose': 0, 'net/netfilter/nf_conntrack_tcp_be_liberal': 1 } as const

// Bridged frames pass only the bridge's own rules. These settings do not exist while the module is not loaded.
const BRIDGED = { 'net/bridge/bridge-nf-call-iptables': 0, 'net/bridge/bridge-nf-call-ip6tables': 0, 'net/bridge/bridge-nf-call-arptables': 0 } as const

/** Whether the file is a namespace. A kill in the middle of `ip netns add`, or a reboot, leaves an empty file. */
export async function isNamespace (path: string): Promise<boolean> {
  try {
    return (await statfs(path)).type === NSFS_MAGIC
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false
    throw error
  }
}

/**
 * Lets the users of VMs open the device behind all TAPs, as Debian's own udev rule does; hosts without udev leave it to root. This gives
 * no power: a TAP opens only for its owner, and making one needs CAP_NET_ADMIN.
 */
export async function openTunDevice (): Promise<void> {
  const { mode } = await stat(TUN_DEVICE)
  if ((mode & 0o006) !== 0o006) await chmod(TUN_DEVICE, 0o666)
}

/** Makes the namespace unless it is there. */
export async function ensureNamespace (commands: HostCommands, { namespace, namespacePath }: Settings): Promise<void> {
  if (await isNamespace(namespacePath)) return
  await rm(namespacePath, { force: true })
  await commands.run('ip', ['netns', 'add', namespace])
}

/**
 * The links of the namespace.
 * @throws NetworkUnusable when it belongs to another data folder: the bridge's MAC, which it has from its creation on, shows that
 */
export async function readOwnLinks (tools: NetworkTools, { namespace, gatewayMac }: Settings): Promise<ReadonlyMap<string, Link>> {
  const links = await readLinks(tools)
  const bridge = links.get(BRIDGE)
  if (bridge !== undefined && bridge.address !== gatewayMac) {
    throw NetworkUnusable(`the network namespace ${namespace} belongs to ${bridge.ifalias ?? 'another server'}; set plugins.networking.config.namespace to a name of its own`)
  }
  return links
}

/** Makes the bridge and the gateway address, which are not up yet. */
export async function ensureBridge (tools: NetworkTools, links: ReadonlyMap<string, Link>, { cidr, gateway, gatewayMac, dataDir }: Settings): Promise<void> {
  // before there is a device that could get an IPv6 address
  await tools.sysctl({ ...NO_IPV6, ...IPV4 }, 'ignore')
  const bridge = links.get(BRIDGE)
  const old = (bridge?.addr_info ?? []).filter(({ family, local, prefixlen }) => family === 'inet' && (local !== gateway || prefixlen !== cidr.prefix))
  await tools.ip([
    'link set dev lo up',
    ...bridge === undefined ? [`link add ${BRIDGE} address ${gatewayMac} type bridge`] : [],
    `link set dev ${BRIDGE} type bridge stp_state 0 mcast_snooping 0`,
    ...old.map(({ local, prefixlen }) => `address del ${local}/${prefixlen} dev ${BRIDGE}`),
    `address replace ${gateway}/${cidr.prefix} dev ${BRIDGE}`,
    // for people who inspect the namespace; the MAC above decides
    `link set dev ${BRIDGE} alias "the server of ${aliasSafe(dataDir)}"`
  ])
}

/** Brings the bridge up and lets it forward. The rules must be in force. */
export async function openBridge (tools: NetworkTools): Promise<void> {
  await tools.ip([`link set dev ${BRIDGE} up`])
  // Not together with the next call: these settings do not exist on every kernel, those must.
  await tools.sysctl(BRIDGED, 'ignore')
  await tools.sysctl({ ...TRACKING, ...FORWARDING })
}

/** Removes the namespace, and with it every device, rule and class in it. */
export async function removeNamespace (commands: HostCommands, { namespace, namespacePath }: Settings): Promise<void> {
  if (await isNamespace(namespacePath)) await commands.run('ip', ['netns', 'delete', namespace])
}

/** Processes that live in the namespace. */
export async function processesIn (commands: HostCommands, { namespace }: Settings): Promise<number[]> {
  const { stdout } = await commands.run('ip', ['netns', 'pids', namespace])
  return stdout.split('\n').filter((line) => line !== '').map(Number)
}

// `ip -batch` splits words at white space and quotes.
function aliasSafe (text: string): string {
  return text.replaceAll(/[^\w./@+-]/g, '_').slice(0, 200)
}
