// The firewall inside the namespace, as text for nft. There is one set of rules for all guests; guests differ only in elements of sets.
import { INTERNAL_V4, METADATA_V4 } from '../../proxy/contract/ranges.ts'
import type { EgressMode, InboundPort } from './contract.ts'
import { BRIDGE, DOWN_LINKS, UPLINK, UP_LINKS } from './names.ts'
import type { Redirects } from './redirects.ts'
import type { Settings } from './settings.ts'
import { MEDIATED_MODES } from '../../proxy/contract/modes.ts'

/** The facts about a plugged guest that the rules need. */
export interface GuestRules {
  readonly tap: string
  readonly mac: string
  readonly ip: string
  readonly egress: EgressMode
  /** user of its VMM; `undefined` when that is the server's own user */
  readonly uid?: number
}

export interface RulesetFacts {
  readonly settings: Settings
  /** where no guest may send: configured networks, and the host's addresses */
  readonly denied: readonly string[]
  readonly redirects: Redirects
}

/** A port of an instance that connections from outside may come to. */
export interface Opening extends InboundPort { readonly ip: string }

type Elements = Readonly<Record<'senders' | 'guests' | 'direct' | 'mediated' | 'sealed' | 'vm_users', readonly string[]>>

const SENDERS = 'bridge berth senders'
// The proxy has a limit of its own, with answers; this one keeps floods away from it.
const PROXY_DNS_PER_SECOND = 500
const BURST_SECONDS = 4
// dnsmasq has a process for each TCP connection, and answers its queries one after the other. Resolvers use TCP when an answer was too long.
const DNS_STREAMS = 4

/**
 * Both tables, complete. They replace the existing ones in one transaction, so that there is no moment without rules, and nothing of a guest
 * that is not in `guests` remains.
 */
export function renderRuleset ({ settings, denied, redirects }: RulesetFacts, guests: readonly GuestRules[], openings: readonly Opening[] = []): string {
  const elements = elementsOf(guests)
  return [
    'table bridge berth {}', 'delete table bridge berth', 'table inet berth {}', 'delete table inet berth',
    bridgeTable(settings, elements), inetTable(settings, elements, denied, openings.map(openingText)), redirectElements(redirects), ''
  ].join('\n')
}

/** Replaces the openings. */
export function renderOpenings (openings: readonly Opening[]): string {
  const added = openings.length === 0 ? [] : [`add element inet berth published { ${openings.map(openingText).join(', ')} }`]
  return ['flush set inet berth published', ...added, ''].join('\n')
}

/** Replaces the ports that go to the proxy. */
export function renderRedirects (redirects: Redirects): string {
  return ['flush map inet berth redirects', 'flush set inet berth mediated_ports', 'flush set inet berth proxy_ports', redirectElements(redirects), ''].join('\n')
}

function redirectElements (redirects: Redirects): string {
  return [
    `add element inet berth redirects { ${[...redirects].map(([meant, port]) => `${meant} : ${port}`).join(', ')} }`,
    `add element inet berth mediated_ports { ${[...redirects.keys()].join(', ')} }`,
    `add element inet berth proxy_ports { ${[...redirects.values()].join(', ')} }`
  ].join('\n')
}

function openingText ({ ip, protocol, port }: Opening): string {
  return `${ip} . ${protocol} . ${port}`
}

/** Adds the elements of a new guest. Removals, even of nothing, would cost the kernel's commit several ms more. */
export function renderAdmission (guest: GuestRules): string {
  return [...lines('add', elementsOf([guest])), ''].join('\n')
}

/** Sets what an existing guest may send, whatever it was before. Idempotent. */
export function renderChange (guest: GuestRules): string {
  // Adding first makes each removal valid, whatever exists.
  const before = elementsOf((['none', ...MEDIATED_MODES] as const).map((egress) => ({ ...guest, egress })))
  return [...lines('add', before), ...lines('delete', before), ...lines('add', elementsOf([guest])), ''].join('\n')
}

/** Removes a guest's elements. Idempotent. */
export function renderExpulsion (guest: GuestRules): string {
  const all = elementsOf((['none', ...MEDIATED_MODES] as const).map((egress) => ({ ...guest, egress })))
  return [...lines('add', all), ...lines('delete', all), ''].join('\n')
}

function lines (verb: 'add' | 'delete', elements: Elements): string[] {
  const { senders, ...others } = elements
  return [
    ...senders.length === 0 ? [] : [`${verb} element ${SENDERS} { ${senders.join(', ')} }`],
    ...Object.entries(others).filter(([, members]) => members.length > 0).map(([set, members]) => `${verb} element inet berth ${set} { ${members.join(', ')} }`)
  ]
}

function elementsOf (guests: readonly GuestRules[]): Elements {
  const ips = (chosen: (guest: GuestRules) => boolean): string[] => unique(guests.filter(chosen).map(({ ip }) => ip))
  return {
    senders: unique(guests.map(({ tap, mac, ip }) => `"${tap}" . ${mac} . ${ip}`)),
    guests: ips(() => true),
    direct: ips(({ egress }) => egress === 'none'),
    mediated: ips(({ egress }) => egress !== 'none'),
    sealed: ips(({ egress }) => egress === 'all'),
    vm_users: unique(guests.flatMap(({ uid }) => uid === undefined ? [] : [String(uid)]))
  }
}

function unique (values: readonly string[]): string[] {
  return [...new Set(values)]
}

/** Senders: a TAP passes only frames of its own MAC with its own address to the gateway. */
function bridgeTable ({ gateway, gatewayMac }: Settings, { senders }: Elements): string {
  return `table bridge berth {
  set senders { type ifname . ether_addr . ipv4_addr;${listed(senders)} }
  chain arriving {
    type filter hook prerouting priority -300; policy drop;
    ether type ip ether daddr ${gatewayMac} iifname . ether saddr . ip saddr @senders accept
    ether type arp ether daddr { ff:ff:ff:ff:ff:ff, ${gatewayMac} } arp htype 1 arp ptype ip arp hlen 6 arp plen 4 arp daddr ip ${gateway} iifname . ether saddr . arp saddr ip @senders iifname . arp saddr ether . arp saddr ip @senders accept
    # Between the bridges: what a guest sends was judged where it came from, and what comes down is the gateway's.
    iifname "${DOWN_LINKS}" accept
    iifname "${UP_LINKS}" accept
  }
  chain upward {
    # Frames to 01:80:c2:00:00:0X come this way and not through the chain above.
    type filter hook input priority -300; policy drop;
    ether daddr { ff:ff:ff:ff:ff:ff, ${gatewayMac} } accept
  }
  chain across {
    type filter hook forward priority -300; policy drop;
    # Further bridges only pass frames between their guests and the first one, which passes none.
    iifname "${UP_LINKS}" accept
    oifname "${UP_LINKS}" accept
  }
}`
}

function inetTable (settings: Settings, elements: Elements, denied: readonly string[], openings: readonly string[]): string {
  return `table inet berth {
  set guests { type ipv4_addr;${listed(elements.guests)} }
  set direct { type ipv4_addr;${listed(elements.direct)} }
  set mediated { type ipv4_addr;${listed(elements.mediated)} }
  set sealed { type ipv4_addr;${listed(elements.sealed)} }
  set vm_users { type uid;${listed(elements.vm_users)} }
${destinations(settings, denied)}
  set published { type ipv4_addr . inet_proto . inet_service;${listed(openings)} }
  set called { type ipv4_addr; flags dynamic; }
  set askers { type ipv4_addr; flags dynamic; timeout 10s; }
  set proxy_askers { type ipv4_addr; flags dynamic; timeout 10s; }
  map redirects { type inet_service : inet_service; }
  set mediated_ports { type inet_service; }
  set proxy_ports { type inet_service; }
  set streams { type ipv4_addr; flags dynamic; }
  set callers { type ipv4_addr; flags dynamic; }
${arrival(settings)}
${passing(settings)}
${ways(settings)}
}`
}

/** The same decision as the proxy's own (proxy/contract/vet.ts), for destinations that guests reach without the proxy. */
function destinations ({ allowed }: Settings, denied: readonly string[]): string {
  const set = (name: string, members: readonly string[]): string => `  set ${name} { type ipv4_addr; flags interval; auto-merge;${listed(members)} }`
  // An operator opens a service of this machine by naming its exact address; a range that happens to contain it is not enough.
  const named = allowed.filter((range) => !range.includes('/') || range.endsWith('/32'))
  return [set('metadata', METADATA_V4), set('denied', denied), set('named', named), set('internal', INTERNAL_V4), set('opened', allowed)].join('\n')
}

/** Before connections are tracked: drops packets with a source address that does not belong to their sender. */
function arrival ({ cidr, proxy }: Settings): string {
  return `  chain arriving {
    type filter hook prerouting priority raw; policy drop;
    iifname "lo" accept
    iifname "${BRIDGE}" ip saddr @guests accept
    iifname "${UPLINK}" ip saddr != ${cidr.text} accept
  }
  chain redirecting {
    type nat hook prerouting priority dstnat; policy accept;
    iifname "${BRIDGE}" ip saddr @sealed meta l4proto { tcp, udp } th dport 53 redirect to :${proxy.dnsPort}
    iifname "${BRIDGE}" ip saddr @mediated tcp dport @mediated_ports redirect to :tcp dport map @redirects
  }`
}

/** The rules for packets that pass through the namespace, and chains that several others use. */
function passing ({ connectionsPerGuest }: Settings): string {
  return `  chain refuse {
    meta l4proto tcp reject with tcp reset
    reject with icmpx type admin-prohibited
  }
  chain known {
    ct state established,related accept
    ct state invalid goto refuse
    ct state new add @callers { ip saddr ct count over ${connectionsPerGuest} } goto refuse
  }
  chain through {
    type filter hook forward priority filter; policy drop;
    iifname "${UPLINK}" oifname "${BRIDGE}" ct state established,related accept
    iifname "${UPLINK}" oifname "${BRIDGE}" ct state new ip daddr . meta l4proto . th dport @published jump published
    iifname "${BRIDGE}" jump outward
  }
  chain published {
    add @called { ip daddr ct count over ${connectionsPerGuest} } drop
    accept
  }
  chain outward {
    oifname != "${UPLINK}" goto refuse
    # What a guest answers goes to whoever has called it: nobody gets that far but to a published port.
    ct state established ct direction reply accept
    # Before what is known: a network that is closed is closed to connections of before, too.
    ip daddr @metadata goto refuse
    ip daddr @denied ip daddr != @named goto refuse
    ip daddr @internal ip daddr != @opened goto refuse
    jump known
    ip saddr @direct accept
    ip saddr @sealed goto refuse
    # Never reached while the redirect stands; without it there is still no way.
    ip saddr @mediated meta l4proto { tcp, udp } th dport @mediated_ports goto refuse
    ip saddr @mediated accept
    goto refuse
  }`
}

function ways ({ gateway, proxy, dnsQueriesPerSecond }: Settings): string {
  return `  chain inward {
    type filter hook input priority filter; policy drop;
    iifname "lo" accept
    iifname "${UPLINK}" ct state established,related accept
    iifname "${BRIDGE}" jump gateway
  }
  chain asking {
    # A guest's share of the forwarder. Every datagram counts, also of a conversation that has had an answer: each may be a question that is never answered, and is remembered for 10 s.
    udp dport 53 update @askers { ip saddr limit rate over ${dnsQueriesPerSecond}/second burst ${dnsQueriesPerSecond * BURST_SECONDS} packets } drop
    tcp dport 53 ct state new update @askers { ip saddr limit rate over ${dnsQueriesPerSecond}/second burst ${dnsQueriesPerSecond * BURST_SECONDS} packets } drop
    tcp dport 53 ct state new add @streams { ip saddr ct count over ${DNS_STREAMS} } goto refuse
    th dport ${proxy.dnsPort} update @proxy_askers { ip saddr limit rate over ${PROXY_DNS_PER_SECOND}/second burst ${PROXY_DNS_PER_SECOND} packets } drop
  }
  chain gateway {
    meta l4proto { tcp, udp } th dport { 53, ${proxy.dnsPort} } jump asking
    jump known
    ip saddr @mediated ct status dnat tcp dport @proxy_ports accept
    meta l4proto { tcp, udp } th dport { 53, ${proxy.dnsPort} } jump questions
    goto refuse
  }
  chain questions {
    ip saddr @sealed ct status dnat th dport ${proxy.dnsPort} accept
    ip saddr != @sealed ip daddr ${gateway} th dport 53 accept
  }
  chain own {
    # A VMM lives in this namespace for its TAP alone: one that a guest has taken over gets nothing of the rest.
    type filter hook output priority filter; policy accept;
    meta skuid @vm_users drop
  }`
}

function listed (members: readonly string[]): string {
  return members.length === 0 ? '' : ` elements = { ${members.join(', ')} };`
}
