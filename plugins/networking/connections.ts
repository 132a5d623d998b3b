// Ends the remaining connections of a guest, so that none of them reaches another guest, or survives newer rules.
import { exitedWith, type NetworkTools } from './tools.ts'

/** Each time at least one connection fewer is left, and they end rarely. */
const ATTEMPTS = 10

/** Ends the tracked connections from and to an address, and the sockets of this namespace that are connected to it. */
export async function endConnections (tools: NetworkTools, ip: string): Promise<void> {
  await Promise.all([
    forget(tools, ['--orig-src', ip]),
    forget(tools, ['--orig-dst', ip]),
    tools.run('ss', ['--kill', '--no-header', '--tcp', 'dst', ip])
  ])
}

/** Ends the tracked connections to one port of an address. */
export async function endConnectionsTo (tools: NetworkTools, ip: string, protocol: 'tcp' | 'udp', port: number): Promise<void> {
  await forget(tools, ['--orig-dst', ip, '--proto', protocol, '--dport', String(port)])
}

async function forget (tools: NetworkTools, filter: readonly string[]): Promise<void> {
  for (let left = ATTEMPTS; ; left--) {
    try {
      await tools.run('conntrack', ['--delete', ...filter])
      return
    } catch (error) {
      if (!exitedWith(error, 1)) throw error
      // conntrack's exit code when there were no connections
      if (error.failure.stderr.includes('0 flow entries')) return
      // conntrack lists the connections and then deletes one after the other, and stops at one that has ended by itself meanwhile.
      if (left === 1 || !error.failure.stderr.includes('such conntrack doesn\'t exist')) throw error
    }
  }
}
