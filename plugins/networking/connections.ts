// Ends the remaining connections of a guest, so that none of them reaches another guest, or survives newer rules.
import { forgetConnections } from '../../core/library/conntrack.ts'
import type { NetworkTools } from './tools.ts'

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
  await forgetConnections(async (args) => await tools.run('conntrack', args), filter)
}
