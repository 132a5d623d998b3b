// The config turned into the code's form: networks as numbers, rates in bytes per second, derived names.
import { parseIPv4 } from '../../core/library/ipv4.ts'
import { processorsOfHost } from '../../core/process/host-processors.ts'
import { parseRate } from '../../core/units.ts'
import type { NetworkLimits } from './contract.ts'
import { addressAt, GATEWAY_POSITION, parseCidr, type Cidr } from './cidr.ts'
import type { NetworkingConfig } from './manifest.ts'
import { deviceMac, hostLinkOf, namespaceOf } from './names.ts'
import { MOST_FURTHER_PORTS } from './redirects.ts'

export interface Settings {
  readonly dataDir: string
  readonly hostId: string
  readonly namespace: string
  /** the namespace as a file */
  readonly namespacePath: string
  readonly cidr: Cidr
  readonly gateway: string
  readonly gatewayMac: string
  readonly uplink: UplinkSettings
  /** networks that guests may not reach directly */
  readonly denied: readonly string[]
  /** private networks that guests may reach */
  readonly allowed: readonly string[]
  /** `address` or `address#port`; none: the host's own */
  readonly dnsServers: readonly string[]
  /** of one guest */
  readonly dnsQueriesPerSecond: number
  readonly proxy: NetworkingConfig['proxy']
  readonly capacity: { readonly downloadBps?: number, readonly uploadBps?: number }
  readonly hostCpus: number
  readonly connectionsPerGuest: number
}

export interface UplinkSettings {
  /** `auto`, `none` or an interface */
  readonly interface: string
  /** the host's end */
  readonly hostLink: string
  readonly hostMac: string
  readonly namespaceMac: string
}

/** Bytes per second; absent: no limit. */
export interface EffectiveLimits { readonly downloadBps?: number, readonly uploadBps?: number }

const NAMESPACE_FOLDER = '/run/netns'

/** @throws Error that names the field */
export function resolveSettings (config: NetworkingConfig, { dataDir, hostId }: { dataDir: string, hostId: string }): Settings {
  const namespace = config.namespace ?? namespaceOf(dataDir)
  const cidr = inField('cidr', () => parseCidr(config.cidr))
  return {
    dataDir,
    hostId,
    namespace,
    namespacePath: `${NAMESPACE_FOLDER}/${namespace}`,
    cidr,
    gateway: addressAt(cidr, GATEWAY_POSITION),
    gatewayMac: deviceMac(hostId, 'gateway'),
    uplink: {
      interface: config.uplink,
      hostLink: hostLinkOf(namespace),
      hostMac: deviceMac(hostId, 'uplink outside'),
      namespaceMac: deviceMac(hostId, 'uplink inside')
    },
    denied: config.deniedNetworks.map((text, index) => inField(`deniedNetworks.${index}`, () => network(text))),
    allowed: config.allowPrivate.map((text, index) => inField(`allowPrivate.${index}`, () => network(text))),
    dnsServers: config.dns.servers.map((text, index) => inField(`dns.servers.${index}`, () => dnsServer(text))),
    dnsQueriesPerSecond: config.dns.queriesPerSecond,
    proxy: inField('proxy.furtherPorts', () => proxyPorts(config.proxy)),
    capacity: rates(config.bandwidth),
    hostCpus: processorsOfHost(),
    connectionsPerGuest: config.connectionsPerGuest
  }
}

/** The limits of an instance: its own, otherwise its share of the host's capacity, by vCPUs. */
export function effectiveLimits (limits: NetworkLimits, { capacity, hostCpus }: Pick<Settings, 'capacity' | 'hostCpus'>): EffectiveLimits {
  const share = Math.min(1, limits.vcpus / hostCpus)
  const of = (own: number | undefined, whole: number | undefined): number | undefined => own ?? (whole === undefined ? undefined : Math.ceil(whole * share))
  return defined(of(limits.downloadBps, capacity.downloadBps), of(limits.uploadBps, capacity.uploadBps))
}

function rates ({ download, upload }: NetworkingConfig['bandwidth']): EffectiveLimits {
  const rate = (field: string, text: string | undefined): number | undefined => text === undefined ? undefined : inField(`bandwidth.${field}`, () => {
    const parsed = parseRate(text)
    if (parsed === undefined || parsed === 0) throw new Error(`${text} is no rate`)
    return parsed
  })
  return defined(rate('download', download), rate('upload', upload))
}

function proxyPorts (proxy: NetworkingConfig['proxy']): NetworkingConfig['proxy'] {
  const { furtherPorts: first, ...others } = proxy
  const last = first + MOST_FURTHER_PORTS - 1
  const clash = Object.values(others).find((port) => port >= first && port <= last)
  if (last > 65_535 || clash !== undefined) throw new Error(`${first} to ${last} must be ports, and none of ${Object.values(others).join(', ')}`)
  return proxy
}

function defined (downloadBps: number | undefined, uploadBps: number | undefined): EffectiveLimits {
  return { ...downloadBps === undefined ? {} : { downloadBps }, ...uploadBps === undefined ? {} : { uploadBps } }
}

function network (text: string): string {
  const [address = '', prefix = '32'] = text.split('/')
  if (parseIPv4(address) === undefined || Number(prefix) > 32) throw new Error(`${text} is no IPv4 address or network`)
  return text
}

function dnsServer (text: string): string {
  const [address = '', port = '53'] = text.split('#')
  if (parseIPv4(address) === undefined || Number(port) < 1 || Number(port) > 65_535) throw new Error(`${text} is no IPv4 address with or without #port`)
  return text
}

function inField<T> (field: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new Error(`plugins.networking.config.${field}: ${error instanceof Error ? error.message : String(error)}`, { cause: error })
  }
}
