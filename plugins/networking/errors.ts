// The errors of the networking plugin.
import { defineError } from '../../core/errors/define.ts'

export const AddressesExhausted = defineError('insufficient_resources', 'conflict', (cidr: string, count: number) =>
  `the network ${cidr} is full: all ${count} addresses are in use`)

export const PortsExhausted = defineError('insufficient_resources', 'conflict', (count: number) =>
  `the network of this host is full: its bridges hold ${count} running instances`)

/** An operator must change something; the message says what. */
export const NetworkUnusable = defineError('network_unusable', 'unavailable', (why: string) => why)
