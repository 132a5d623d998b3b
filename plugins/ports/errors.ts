// The errors of the ports plugin.
import { defineError } from '../../core/errors/define.ts'

export const InvalidPorts = defineError('invalid_ports', 'invalid', (place: string, rule: string) => `${place}: ${rule}`)

export const PortPublished = defineError('port_in_use', 'conflict', (place: string, instance: string) => `${place} is published for instance ${instance} already`)

export const PortHeld = defineError('port_in_use', 'conflict', (place: string) => `${place} is held by another program of this host`)

export const NoFreePort = defineError('insufficient_resources', 'conflict', (address: string, first: number, last: number) =>
  `no port of ${address} from ${first} to ${last} is free`)

export const TooManyPorts = defineError('insufficient_resources', 'conflict', (what: string, most: number) => `${what} has ${most} published ports already, which is the most`)

/** Guests cannot be reached from outside. */
export const NoWayToGuests = defineError('not_supported', 'unsupported', (field: string, why: string) => `${field}: ${why}`)
