// All that a server could change of its host's network, as text that can be compared byte for byte.
import type { World } from './world.ts'

export type HostState = Readonly<Record<'links' | 'routes' | 'neighbours' | 'rules' | 'settings', string[]>>

/** Links, addresses, routes, neighbours, rules and all settings of the host's network. */
export async function hostState (world: World): Promise<HostState> {
  const of = async (file: string, ...args: readonly string[]): Promise<string[]> => (await world.in(world.host, file, ...args)).split('\n')
  return {
    links: (await of('ip', '-details', 'address', 'show')).map((line) => line.replace(/valid_lft.*/, '')),
    routes: await of('ip', 'route', 'show', 'table', 'all'),
    neighbours: (await of('ip', 'neigh', 'show', 'nud', 'permanent')),
    rules: await of('nft', 'list', 'ruleset'),
    // the pool of random numbers and the clocks of the kernel change by themselves
    settings: (await of('sysctl', '--all', '--pattern', '^net\\.')).filter((line) => !/^net\.netfilter\.nf_conntrack_count|gc_stale|base_reachable|\.mc_forwarding/.test(line))
  }
}

/** Lines that are there now and were not before. */
export function added (before: readonly string[], after: readonly string[]): string[] {
  return after.filter((line) => line.trim() !== '' && !before.includes(line)).map((line) => line.trim())
}

/** What the way out adds to the host, as the plugin's README says: all of it, in the order of `HostState`. @param link the host's end @param wan the interface that leads out */
export function documentedLines (before: HostState, link: string, wan: string): Readonly<Record<'routes' | 'rules' | 'settings', readonly string[]>> {
  return {
    routes: [`10.100.0.0/16 via 10.100.0.1 dev ${link} onlink`],
    rules: [
      `table ip ${link} {`, 'comment "guests of Berth"', 'chain leaving {', 'type nat hook postrouting priority srcnat; policy accept;', `ip saddr 10.100.0.0/16 oifname "${wan}" masquerade`, '}', '}'
    ].filter((line) => line !== '}' || !before.rules.includes('}')),
    settings: [`net.ipv4.conf.${wan}.forwarding = 1`]
  }
}
