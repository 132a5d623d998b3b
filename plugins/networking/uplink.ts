// The link out of the namespace: a pair of devices, one route and one rule on the host; nothing else of the host is touched. All of it is removed again.
import { ifListed } from '../../core/library/nft.ts'
import { NetworkUnusable } from './errors.ts'
import { readLinks, routeDevice, type Link } from './links.ts'
import { BRIDGE, UPLINK } from './names.ts'
import type { Settings } from './settings.ts'
import type { NetworkTools } from './tools.ts'

// Next hop of the namespace. Nobody has this address: its MAC is set statically.
export const NEXT_HOP = '169.254.0.1'

/**
 * Makes the uplink as configured, or removes it.
 * @returns the interface that it uses
 * @throws NetworkUnusable when the host routes the guests' network elsewhere, or has no such interface
 */
export async function settleUplink (settings: Settings, inside: NetworkTools, outside: NetworkTools): Promise<string | undefined> {
  const wanted = settings.uplink.interface
  const device = wanted === 'none' ? undefined : wanted === 'auto' ? await routeDevice(outside, ['default']) : wanted
  if (device === undefined) {
    await removeUplink(settings, outside)
    // Leads nowhere: the rules refuse guests' packets at once. Without a route guests would only get "network unreachable", and retry for minutes.
    await inside.ip([`route replace default dev ${BRIDGE}`])
    return undefined
  }
  const links = await readLinks(outside)
  if (!links.has(device)) throw NetworkUnusable(`plugins.networking.config.uplink: the host has no interface ${device}`)
  await connect(settings, inside, outside, links.get(settings.uplink.hostLink), device)
  return device
}

/**
 * What is not as `settleUplink` has left it, as somebody else changes the host; undefined when all is well. A default route that is gone is no fault: it may be back in a moment,
 * and guests lose nothing by what waits for it.
 * @param device that `settleUplink` returned
 */
export async function uplinkFault (settings: Settings, outside: NetworkTools, device: string | undefined): Promise<string | undefined> {
  const { interface: wanted, hostLink } = settings.uplink
  if (wanted === 'auto') {
    const now = await routeDevice(outside, ['default'])
    if (now !== undefined && now !== device) return `the host's default route leads through ${now} now`
  }
  if (device === undefined) return undefined
  const rules = await ifListed(async () => await outside.run('nft', ['list', 'table', 'ip', hostLink]))
  return rules?.includes('masquerade') === true ? undefined : `the table ip ${hostLink} of the host's rules was removed`
}

/** Undoes what `settleUplink` did to the host. Idempotent. */
export async function removeUplink ({ uplink: { hostLink } }: Settings, outside: NetworkTools): Promise<void> {
  const link = (await readLinks(outside)).get(hostLink)
  // Without the device this server never had an uplink, so it has changed nothing. The device is made first and removed last.
  if (link === undefined) return
  await outside.nft(`table ip ${hostLink} {}\ndelete table ip ${hostLink}\n`)
  const { device, forwarded } = noteOf(link)
  if (device !== undefined && !forwarded) await outside.sysctl({ [forwardingOf(device)]: 0 }, 'ignore')
  await outside.ip([`link del dev ${hostLink}`])
}

async function connect (settings: Settings, inside: NetworkTools, outside: NetworkTools, before: Link | undefined, device: string): Promise<void> {
  const { cidr, gateway, namespace, uplink: { hostLink, hostMac, namespaceMac } } = settings
  const routed = await routeDevice(outside, ['exact', cidr.text])
  if (routed !== undefined && routed !== hostLink) {
    throw NetworkUnusable(`plugins.networking.config.cidr: the host reaches ${cidr.text} through ${routed} already; choose another network`)
  }
  if (before !== undefined && noteOf(before).device !== device) {
    await removeUplink(settings, outside)
    before = undefined
  }
  if (before === undefined) {
    const forwarded = (await outside.run('sysctl', ['--values', forwardingOf(device)])).trim() === '1'
    await outside.ip([
      `link add ${hostLink} address ${hostMac} type veth peer name ${UPLINK} address ${namespaceMac} netns ${namespace}`,
      `link set dev ${hostLink} alias "${device} ${forwarded ? 'forwarded' : 'did-not-forward'}"`
    ])
  }
  await inside.ip([
    `link set dev ${UPLINK} up`,
    `neigh replace ${NEXT_HOP} lladdr ${hostMac} dev ${UPLINK} nud permanent`,
    `route replace default via ${NEXT_HOP} dev ${UPLINK} onlink src ${gateway}`
  ])
  await outside.nft(masquerade(settings, device))
  await outside.sysctl({ [`net/ipv6/conf/${hostLink}/disable_ipv6`]: 1 }, 'ignore')
  await outside.ip([
    `link set dev ${hostLink} up`,
    `neigh replace ${gateway} lladdr ${namespaceMac} dev ${hostLink} nud permanent`,
    `route replace ${cidr.text} via ${gateway} dev ${hostLink} onlink`
  ])
  await outside.sysctl({ [forwardingOf(hostLink)]: 1, [forwardingOf(device)]: 1 })
}

function masquerade ({ cidr, uplink: { hostLink } }: Settings, device: string): string {
  return `table ip ${hostLink} {}
delete table ip ${hostLink}
table ip ${hostLink} {
  comment "guests of Berth"
  chain leaving {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr ${cidr.text} oifname "${device}" masquerade
  }
}
`
}

/** The interface that the link uses, and whether that one forwarded before. */
function noteOf (link: Link): { device: string | undefined, forwarded: boolean } {
  const [device, note] = (link.ifalias ?? '').split(' ')
  return { device: device === '' ? undefined : device, forwarded: note !== 'did-not-forward' }
}

function forwardingOf (device: string): string {
  return `net/ipv4/conf/${device}/forwarding`
}
