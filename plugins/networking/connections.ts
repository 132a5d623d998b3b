// Ends what is left of a guest's connections, so that nothing of them meets another guest, or rules that came later.
import { exitedWith, type NetworkTools } from './tools.ts'

/** The tracked connections from and to an address, and the sockets of this namespace that speak with it. */
export async function endConnections (tools: NetworkTools, ip: string): Promise<void> {
  await Promise.all([
    forget(tools, ['--orig-src', ip]),
    forget(tools, ['--orig-dst', ip]),
    tools.run('ss', ['--kill', '--no-header', '--tcp', 'dst', ip])
  ])
}

/** The tracked connections to one port of an address. */
export async function endConnectionsTo (tools: NetworkTools, ip: string, protocol: 'tcp' | 'udp', port: number): Promise<void> {
  await forget(tools, ['--orig-dst', ip, '--proto', protocol, '--dport', String(port)])
}

async function forget (tools: NetworkTools, filter: readonly string[]): Promise<void> {
  try {
    await tools.run('conntrack', ['--delete', ...filter])
  } catch (error) {
    // 1: there were none
    if (!exitedWith(error, 1) || !error.failure.stderr.includes('0 flow entries')) throw error
  }
}
