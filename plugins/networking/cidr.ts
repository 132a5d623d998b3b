// IPv4 networks, and places in them.
import { formatIPv4, parseIPv4 } from '../../core/library/ipv4.ts'

export interface Cidr {
  /** as written: `10.100.0.0/16` */
  readonly text: string
  /** address of the network */
  readonly base: number
  readonly prefix: number
  /** number of its addresses, including those that no guest gets */
  readonly size: number
}

/** Position of the gateway in the network. */
export const GATEWAY_POSITION = 1
/** First position that an instance may get. */
export const FIRST_POSITION = 2
const SMALLEST_PREFIX = 8
const LARGEST_PREFIX = 30

/** @throws Error that says what is wrong with it */
export function parseCidr (text: string): Cidr {
  const [address = '', length = '', ...rest] = text.split('/')
  const base = parseIPv4(address)
  const prefix = /^\d{1,2}$/.test(length) ? Number(length) : NaN
  if (base === undefined || rest.length > 0 || !(prefix >= SMALLEST_PREFIX && prefix <= LARGEST_PREFIX)) {
    throw new Error(`${text} is no IPv4 network with a prefix from /${SMALLEST_PREFIX} to /${LARGEST_PREFIX}`)
  }
  const size = 2 ** (32 - prefix)
  if (base % size !== 0) throw new Error(`${text} is an address in the network ${formatIPv4(base - base % size)}/${prefix}; write the network`)
  return { text, base, prefix, size }
}

/** The address at a position of the network. */
export function addressAt (cidr: Cidr, position: number): string {
  return formatIPv4(cidr.base + position)
}

/** Last position that an instance may get: the one after it is the broadcast address. */
export function lastPosition (cidr: Cidr): number {
  return cidr.size - 2
}

/** How many instances can have an address. */
export function capacityOf (cidr: Cidr): number {
  return lastPosition(cidr) - FIRST_POSITION + 1
}
