// The host's rules that forward packets for published ports to guests, as text for nft: one table of our own, always replaced as a whole.
import type { HostSide } from '../networking/contract.ts'
import { ALL_ADDRESSES } from './place.ts'
import type { Place } from './record.ts'

/** A published port whose instance is awake. */
export interface Direct extends Place {
  /** of the guest */
  readonly ip: string
  readonly instancePort: number
}

/** Derived from the link, so that a restarted server finds its own again, and two servers of one host do not collide. */
export function tableOf (link: string): string {
  return `${link}-ports`
}

export function renderNone (link: string): string {
  return `table ip ${tableOf(link)} {}\ndelete table ip ${tableOf(link)}\n`
}

/** Replaces the existing rules in one transaction. Open connections continue. */
export function renderRules ({ link, device, loopbackAs }: HostSide, ports: readonly Direct[]): string {
  const map = (protocol: string, addresses: 'one' | 'all'): string => {
    const isAll = addresses === 'all'
    const members = ports.filter((port) => port.protocol === protocol && (port.address === ALL_ADDRESSES) === isAll)
      .map(({ address, hostPort, ip, instancePort }) => `${isAll ? '' : `${address} . `}${hostPort} : ${ip} . ${instancePort}`)
    const elements = members.length === 0 ? '' : ` elements = { ${members.join(', ')} };`
    return `  map ${protocol}_${addresses} { type ${isAll ? '' : 'ipv4_addr . '}inet_service : ipv4_addr . inet_service;${elements} }`
  }
  const leading = (indent: string): string => (['tcp', 'udp'] as const).flatMap((protocol) => [
    `${indent}dnat ip to ip daddr . ${protocol} dport map @${protocol}_one`,
    `${indent}fib daddr type local dnat ip to ${protocol} dport map @${protocol}_all`
  ]).join('\n')
  return `${renderNone(link)}table ip ${tableOf(link)} {
  comment "published ports of Berth"
${(['tcp', 'udp'] as const).flatMap((protocol) => [map(protocol, 'one'), map(protocol, 'all')]).join('\n')}
  chain leading {
${leading('    ')}
  }
  chain guarding {
    # The loopback is for the host alone. The kernel drops what others send there only as it looks for a route, which is after a packet was led to a guest; and the link lets such
    # addresses through, as answers to the loopback come to ${loopbackAs}.
    type filter hook prerouting priority raw; policy accept;
    iifname != "lo" ip daddr 127.0.0.0/8 drop
  }
  chain passing {
    # Who takes the host for a router to a guest's own address goes around the place where its port is published.
    type filter hook forward priority filter; policy accept;
    oifname "${link}" ct state new ct status & dnat == 0 drop
  }
  chain arriving {
    type nat hook prerouting priority dstnat; policy accept;
    iifname "${device}" jump leading
  }
  chain own {
    type nat hook output priority -100; policy accept;
    jump leading
  }
  chain leaving {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 127.0.0.0/8 oifname "${link}" snat to ${loopbackAs}
  }
}
`
}

/** The guests' addresses in a table as `nft --json` lists it. */
export function addressesIn (json: string): ReadonlySet<string> {
  const { nftables }: { nftables: readonly { readonly map?: { readonly elem?: readonly unknown[] } }[] } = JSON.parse(json)
  // Each element is a pair of the requested place and its target: {"concat": [address, port]}.
  const led = nftables.flatMap(({ map }) => map?.elem ?? []).flatMap((element) => Array.isArray(element) ? [JSON.stringify(element[1])] : [])
  return new Set(led.flatMap((text) => /"(\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3})"/.exec(text)?.[1] ?? []))
}
