// Decides whether an address that a name resolved to may be dialled. It checks every address of a DNS answer, and again the address that was reached.
import { isIPv4, type BlockList } from 'node:net'
import { ownAddresses } from './own-addresses.ts'
import type { ReasonCode } from './reasons.ts'
import { embeddedV4, holds, isMetadata, isPrivate, rangeList } from './ranges.ts'

export interface VetOptions {
  /** private ranges that guests may reach */
  readonly allow: readonly string[]
  /** ranges that no guest may reach: the host's public addresses, the guests' own network */
  readonly deny: readonly string[]
}

const METADATA_NAMES = new Set(['metadata.google.internal', 'metadata.goog', 'metadata', 'instance-data', 'instance-data.ec2.internal', 'metadata.azure.internal',
  'metadata.tencentyun.com'])

/** Whether the name is one that clouds give their metadata service. */
export function isMetadataName (name: string): boolean {
  return METADATA_NAMES.has(name)
}

export type Vet = (address: string) => ReasonCode | undefined

/** Makes the function that says why an address may not be dialled. `isBarred` says whether an address is a VM's or denied by the policy. */
export function createVet (options: VetOptions, isBarred: (address: string) => boolean): Vet {
  const allowed = rangeList(options.allow)
  const denied = rangeList(options.deny)
  const exact = rangeList(options.allow.filter(isOneAddress))
  return address => {
    const plain = embeddedV4(address) ?? address
    if (isMetadata(plain)) return 'metadata_refused'
    // An operator opens a service of this machine by naming its exact address; a range that happens to contain it is not enough.
    if (!holds(exact, plain) && (isBarred(plain) || isOwn(plain) || holds(denied, plain))) return 'own_address'
    return isPrivate(plain) && !isAllowed(allowed, address, plain) ? 'private_address' : undefined
  }
}

/** An IPv6 form with an embedded IPv4 address counts as that IPv4 address, so that an allowed IPv6 range does not open IPv4. */
function isAllowed (allowed: BlockList, address: string, plain: string): boolean {
  return address === plain && holds(allowed, plain)
}

function isOneAddress (range: string): boolean {
  const [address = '', length] = range.split('/')
  return length === undefined || length === (isIPv4(address) ? '32' : '128')
}

function isOwn (address: string): boolean {
  return holds(rangeList(ownAddresses()), address)
}
