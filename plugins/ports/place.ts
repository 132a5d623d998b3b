// Which addresses and ports of the host may be published.
import { parseIPv4 } from '../../core/library/ipv4.ts'
import type { PortSpec } from '../instances/contract.ts'
import { InvalidPorts } from './errors.ts'
import type { PortsConfig } from './manifest.ts'
import type { Protocol } from './record.ts'

export const ALL_ADDRESSES = '0.0.0.0'

/** A requested port, with the defaults filled in. */
export interface Wish {
  readonly protocol: Protocol
  readonly address: string
  /** undefined: the server chooses one */
  readonly hostPort: number | undefined
  readonly instancePort: number
}

export interface Rules {
  readonly config: PortsConfig
  /** the host's own IPv4 addresses, now */
  readonly hostAddresses: () => readonly string[]
}

/** Pure but for the host's addresses. @throws invalid_ports naming the field */
export function wishesOf (field: string, ports: readonly PortSpec[], rules: Rules): Wish[] {
  return ports.map((port, index) => wishOf(ports.length === 1 && field === '' ? '' : `${field}.${index}.`, port, rules))
}

function wishOf (prefix: string, { instance_port: instancePort, host_port: hostPort, address = '127.0.0.1', protocol = 'tcp' }: PortSpec, { config, hostAddresses }: Rules): Wish {
  const number = parseIPv4(address)
  if (number === undefined) throw InvalidPorts(`${prefix}address`, 'must be an IPv4 address such as 127.0.0.1')
  if (!config.addresses.some((allowed) => isAllowed(allowed, address, number, hostAddresses))) {
    throw InvalidPorts(`${prefix}address`, `${address} is none of the addresses that this server publishes at (plugins.ports.config.addresses: ${config.addresses.join(', ')})`)
  }
  const { firstPort, lastPort } = config
  if (hostPort !== undefined && (hostPort < firstPort || hostPort > lastPort)) throw InvalidPorts(`${prefix}host_port`, `must be ${firstPort} to ${lastPort} on this server`)
  return { protocol, address, hostPort, instancePort }
}

function isAllowed (allowed: string, address: string, number: number, hostAddresses: () => readonly string[]): boolean {
  if (allowed === 'host') return address === ALL_ADDRESSES || hostAddresses().includes(address)
  const [base = '', prefix = '32'] = allowed.split('/')
  const from = parseIPv4(base)
  const size = 2 ** (32 - Number(prefix))
  return from !== undefined && address !== ALL_ADDRESSES && Math.floor(number / size) === Math.floor(from / size)
}

/** Whether two places are the same, or one of them includes the other. */
export function collide (a: { readonly protocol: string, readonly address: string, readonly hostPort: number }, b: typeof a): boolean {
  return a.protocol === b.protocol && a.hostPort === b.hostPort && (a.address === b.address || a.address === ALL_ADDRESSES || b.address === ALL_ADDRESSES)
}
