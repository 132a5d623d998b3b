// Addresses that are no public service: requests to them would reach the host, its network or a cloud's metadata.
import { BlockList, isIPv4, isIPv6 } from 'node:net'
import { canonicalIPv6 } from './canonical-host.ts'

/** IPv4 ranges in which the host, its networks or its provider may answer, and ranges without public services. From IANA's registries of special-purpose and multicast addresses. */
export const INTERNAL_V4 = ['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24', '192.31.196.0/24', '192.52.193.0/24',
  '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'] as const
// Networks for examples in documents (RFC 5737): nobody uses them.
const DOCUMENTATION_V4 = ['192.0.2.0/24', '198.51.100.0/24', '203.0.113.0/24']
// Everything outside of 2000::/3 is refused by `isPrivate` itself.
const PRIVATE_V6 = ['2001::/23', '2001:db8::/32', '3fff::/20']
/**
 * Metadata services of clouds, IPv4: nearly all; AWS ECS and EKS; Tencent; Scaleway; Alibaba; Volcengine; Oracle's first; and Azure's WireServer, whose address is a public one.
 */
export const METADATA_V4 = ['169.254.169.254', '169.254.170.2', '169.254.170.23', '169.254.0.23', '169.254.42.42', '100.100.100.200', '100.96.0.96', '192.0.0.192', '168.63.129.16'] as const
// AWS, GCP, Oracle, Scaleway, OpenStack.
const METADATA_V6 = ['fd00:ec2::254', 'fd20:ce::254', 'fd00:c1::a9fe:a9fe', 'fd00:42::42', 'fe80::a9fe:a9fe']

/** Makes a list of ranges, each written as `10.0.0.0/8` or as one address. Throws an error that names an invalid range. */
export function rangeList (ranges: readonly string[]): BlockList {
  const list = new BlockList()
  for (const range of ranges) {
    const [address = '', length, ...rest] = range.split('/')
    const family = isIPv4(address) ? 'ipv4' : 'ipv6'
    const bits = length === undefined ? (family === 'ipv4' ? 32 : 128) : Number(length)
    const valid = (isIPv4(address) || isIPv6(address)) && rest.length === 0 && Number.isInteger(bits) && bits >= 0 && bits <= (family === 'ipv4' ? 32 : 128)
    if (!valid) throw new Error(`${range} is not an address range`)
    list.addSubnet(address, bits, family)
  }
  return list
}

const privateV4 = rangeList([...INTERNAL_V4, ...DOCUMENTATION_V4])
const privateV6 = rangeList(PRIVATE_V6)
const metadata = rangeList([...METADATA_V4, ...METADATA_V6])

/** Whether the list contains the address. */
export function holds (list: BlockList, address: string): boolean {
  return list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6')
}

/**
 * The IPv4 address that an IPv6 address stands for (mapped, compatible, NAT64, 6to4), so that no denied IPv4 address is reached through its IPv6 form.
 * `undefined` when it stands for none.
 */
export function embeddedV4 (address: string): string | undefined {
  const groups = groupsOf(address)
  if (groups === undefined) return undefined
  const head = groups.slice(0, 6)
  const last = v4Of(groups[6], groups[7])
  if (head.every(group => group === 0) && last !== '0.0.0.0' && last !== '0.0.0.1') return last
  if (head.slice(0, 5).every(group => group === 0) && head[5] === 0xffff) return last
  if (head[0] === 0x64 && head[1] === 0xff9b && head.slice(2).every(group => group === 0)) return last
  if (head[0] === 0x2002) return v4Of(head[1], head[2])
  return undefined
}

/** Whether it is the address of a metadata service, in any form. */
export function isMetadata (address: string): boolean {
  return holds(metadata, embeddedV4(address) ?? address)
}

/** Whether it is anything but a public unicast address. */
export function isPrivate (address: string): boolean {
  const plain = embeddedV4(address) ?? address
  if (isIPv4(plain)) return holds(privateV4, plain)
  const first = groupsOf(plain)?.[0]
  return first === undefined || first < 0x2000 || first > 0x3fff || holds(privateV6, plain)
}

function groupsOf (address: string): number[] | undefined {
  const canonical = isIPv4(address) ? undefined : canonicalIPv6(address)
  if (canonical === undefined) return undefined
  const [left = '', right] = canonical.split('::')
  const before = numbers(left)
  const after = numbers(right ?? '')
  return [...before, ...new Array<number>(8 - before.length - after.length).fill(0), ...after]
}

function numbers (groups: string): number[] {
  return groups === '' ? [] : groups.split(':').map(group => Number.parseInt(group, 16))
}

function v4Of (high = 0, low = 0): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
