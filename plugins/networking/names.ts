// Names and MACs that are derived from their owner, so that a restarted server finds its own again.
import { createHash, randomBytes } from 'node:crypto'

const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567'
const HASHED_CHARACTERS = 12
const GUEST_LINK = /^b[ti][a-z2-7]{12}$/
const DEFAULT_DATA_DIR = '/var/lib/berth'
const DEFAULT_NAMESPACE = 'berth'

/** the first bridge, which has the gateway's address */
export const BRIDGE = 'berth0'
const FURTHER_BRIDGE = /^berth[1-9]\d*$/
/** what the ends of links between bridges are called, as patterns of nft */
export const UP_LINKS = 'up-berth*'
export const DOWN_LINKS = 'down-berth*'
/** the namespace's end of the way out */
export const UPLINK = 'uplink'

/** @param number from 1 on */
export function furtherBridge (number: number): string {
  return `berth${number}`
}

export function isFurtherBridge (name: string): boolean {
  return FURTHER_BRIDGE.test(name)
}

/** The link of a further bridge to the first one: its end there. */
export function upOf (bridge: string): string {
  return `up-${bridge}`
}

/** Its end on the first bridge. */
export function downOf (bridge: string): string {
  return `down-${bridge}`
}

/** The TAP of an instance. 60 bits of a hash: an interface name has 15 characters, too few for an id. */
export function tapOf (instanceId: string): string {
  return `bt${hashed(instanceId)}`
}

/** The device that queues what a limited instance sends. */
export function shaperOf (instanceId: string): string {
  return `bi${hashed(instanceId)}`
}

/** Whether a link is a guest's TAP or shaper, of any instance. */
export function isGuestLink (name: string): boolean {
  return GUEST_LINK.test(name)
}

/** The namespace of a data folder when none is configured: servers on one machine must not share one. */
export function namespaceOf (dataDir: string): string {
  return dataDir === DEFAULT_DATA_DIR ? DEFAULT_NAMESPACE : `${DEFAULT_NAMESPACE}-${digest(dataDir).toString('hex').slice(0, 8)}`
}

/** The host's end of the way out, and the table of the one rule there. */
export function hostLinkOf (namespace: string): string {
  return `bu${hashed(namespace)}`
}

/**
 * MAC of a device of this host: the same after every restart, so that guests which wake from a memory image still know it, and
 * different for each data folder, so that a namespace shows its owner. Never a guest's: those begin with 02.
 */
export function deviceMac (hostId: string, device: string): string {
  return formatMac([0x06, ...digest(`${hostId}\n${device}`).subarray(0, 5)])
}

/** A guest's MAC: locally administered, otherwise random. */
export function randomMac (): string {
  return formatMac([0x02, ...randomBytes(5)])
}

function formatMac (bytes: readonly number[]): string {
  return bytes.map((byte) => byte.toString(16).padStart(2, '0')).join(':')
}

function hashed (text: string): string {
  return [...digest(text).subarray(0, HASHED_CHARACTERS)].map((byte) => BASE32.charAt(byte % BASE32.length)).join('')
}

function digest (text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
