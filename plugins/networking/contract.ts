// What the network offers other plugins. Types only.
import type { MediatedMode } from '../../proxy/contract/modes.ts'

/** An instance's address in the network. It keeps it until it is deleted. */
export interface NetworkAddress {
  /** IPv4 */
  readonly ip: string
  /** of the network's CIDR */
  readonly prefix: number
  /** `02:00:00:aa:bb:cc` */
  readonly mac: string
  readonly gateway: string
  /** DNS servers for the guest */
  readonly dns: readonly string[]
}

export interface NetworkLimits {
  /** bytes per second from outside to the VM; `undefined`: its share by vCPUs where a capacity is configured, otherwise no limit */
  readonly downloadBps?: number
  /** bytes per second from the VM to outside */
  readonly uploadBps?: number
  readonly vcpus: number
}

/** Which traffic a VM may send. `none`: without the proxy, directly out. */
export type EgressMode = 'none' | MediatedMode

/** A plugged VM. */
export interface NetworkPort {
  /** path of the network namespace, for the VMM to be started in */
  readonly namespace: string
  /** name of the TAP device in it, owned by the VM's user */
  readonly tap: string
}

export interface NetworkCounters {
  /** received by the VM */
  readonly rxBytes: number
  /** sent by the VM */
  readonly txBytes: number
}

/** A TCP connection that somebody has made to a guest. */
export interface InboundConnection {
  readonly instanceId: string
  /** IPv4 */
  readonly source: string
  readonly sourcePort: number
  /** of the guest */
  readonly port: number
  /** Also while it is being opened or closed. A closed one stays in the list for a while, 10 s at least. */
  readonly open: boolean
}

/** TCP ports that guests reach only through the proxy, by protocol. 80 is one of `http`, 443 one of `https`, and no port is in both. */
export interface MediatedPorts {
  readonly http: readonly number[]
  readonly https: readonly number[]
}

/** Where the proxy listens for connections of guests to one port. */
export interface ProxyListener {
  readonly kind: 'http' | 'https'
  /** port that guests connect to */
  readonly meant: number
  /** of the gateway */
  readonly port: number
}

/** The egress proxy's place in the network. */
export interface ProxyPlace {
  /** path of the network namespace */
  readonly namespace: string
  /** IPv4 address that guests' connections are redirected to */
  readonly gateway: string
  readonly listeners: readonly ProxyListener[]
  readonly dnsPort: number
  /** servers that answer from within the namespace, `address` or `address#port` */
  readonly nameServers: readonly string[]
  /** networks and addresses that no guest may reach: configured ones, the guests' own, and the host's addresses */
  readonly denied: readonly string[]
}

/** A port of a guest that may be reached from outside. */
export interface InboundPort {
  readonly protocol: 'tcp' | 'udp'
  readonly port: number
}

/** The link between the host and the guests' namespace. */
export interface HostSide {
  /** the host's end of the link to the guests; the host's routes lead there */
  readonly link: string
  /** interface through which guests reach the outside, and whose packets the host forwards to them */
  readonly device: string
  /** unused IPv4 address that the host's own loopback has as a source towards guests: their answers come back by `link` */
  readonly loopbackAs: string
}

/** Facts about the network for clients. */
export interface NetworkFacts {
  /** CIDR of the guests */
  readonly subnet: string
  /** IPv4 address of the gateway, as guests see it */
  readonly gateway: string
  /** whether guests can reach each other */
  readonly guestToGuest: boolean
  /** whether no guest reaches the outside, or is reached from there */
  readonly isClosed?: boolean
}

export interface NetworkService {
  readonly facts: NetworkFacts
  /** as configured: an interface of the host, `auto` or `none` */
  readonly uplink: string
  /**
   * Allows new connections from outside to these ports of an instance only; connections to ports that are no longer allowed end. Valid until the server or the instance ends: the caller must set it
   * again after a start.
   */
  setInbound (instanceId: string, ports: readonly InboundPort[]): Promise<void>
  /** The host's end of the link to guests, whether it exists yet or not; undefined: the network is closed, so that guests cannot be reached from outside. */
  readonly hostLink: string | undefined
  /** The host's side of the network as it is now; undefined while there is no guest, and when the network is closed. */
  readonly hostSide: HostSide | undefined
  /** Redirects these ports to the proxy from now on, and no others; before the first call, the ports of an earlier server are redirected, or 80 and 443. Open connections continue. */
  mediate (ports: MediatedPorts): Promise<void>
  /** The proxy's place, which is made when it does not exist. */
  proxyPlace (): Promise<ProxyPlace>
  /** Reserves an address and a MAC; idempotent. @throws insufficient_resources when the CIDR is full */
  allocate (instanceId: string): Promise<NetworkAddress>
  /** The address of an instance that has one. */
  addressOf (instanceId: string): NetworkAddress | undefined
  /** Frees the address, and removes everything else of the instance. Idempotent. */
  release (instanceId: string): Promise<void>
  /**
   * Releases every address whose instance is not among these. Called at the start by the plugin that knows the instances, since an earlier server
   * may have been killed between allocating an address and storing the instance.
   */
  retainOnly (instanceIds: Iterable<string>): Promise<void>
  /**
   * Makes the TAP with its rules, which are in force before it is up. Replaces an existing one.
   * @param uid the VM's user; `undefined` when it is the server's own
   */
  plug (instanceId: string, uid: number | undefined, limits: NetworkLimits, egress: EgressMode): Promise<NetworkPort>
  /** Changes at once which traffic a plugged VM may send. */
  setEgress (instanceId: string, egress: EgressMode): Promise<void>
  /** Removes the TAP with its rules, and ends its connections; the address stays. Idempotent. */
  unplug (instanceId: string): Promise<void>
  /** Takes the TAP of a paused VM down, with its rules in place, and ends its connections: no packet passes in either direction. */
  suspend (instanceId: string): Promise<void>
  /** Brings the TAP of such a VM up again. False when it no longer exists: this VM then has no network. */
  resume (instanceId: string): Promise<boolean>
  counters (instanceId: string): Promise<NetworkCounters | undefined>
  /** The inbound connections of all guests. Rejects when the kernel cannot be asked. */
  inbound (): Promise<readonly InboundConnection[]>
  /** The limits of such an instance, bytes per second; absent: no limit. With unlimited vCPUs they are the host's capacity, where it is configured. */
  limitsOf (limits: NetworkLimits): Pick<NetworkLimits, 'downloadBps' | 'uploadBps'>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly network: NetworkService
  }
}
