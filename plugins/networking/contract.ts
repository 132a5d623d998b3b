// What other plugins may know of the network. Types only.
import type { MediatedMode } from '../../proxy/contract/modes.ts'

/** An instance's place in the network. It keeps it until it is deleted. */
export interface NetworkAddress {
  /** IPv4 */
  readonly ip: string
  /** of the network's CIDR */
  readonly prefix: number
  /** `02:00:00:aa:bb:cc` */
  readonly mac: string
  readonly gateway: string
  /** servers that the guest asks */
  readonly dns: readonly string[]
}

export interface NetworkLimits {
  /** bytes per second from outside to the VM; `undefined`: the share of its vCPUs where one is configured, else none */
  readonly downloadBps?: number
  /** bytes per second from the VM to outside */
  readonly uploadBps?: number
  readonly vcpus: number
}

/** What a VM's traffic is allowed. `none`: directly out. */
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
  /** Also while it is being made or ended. One that is over is still known for a while, 10 s at least. */
  readonly open: boolean
}

/** TCP ports that guests reach only through the proxy, by what is spoken there. 80 is among the first, 443 among the second, and none is in both. */
export interface MediatedPorts {
  readonly http: readonly number[]
  readonly https: readonly number[]
}

/** Where the proxy takes what guests send to one port. */
export interface ProxyListener {
  readonly kind: 'http' | 'https'
  /** port that guests mean */
  readonly meant: number
  /** of the gateway */
  readonly port: number
}

/** Where the egress proxy has its place. */
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

/** A port of a guest that connections from outside may come to. */
export interface InboundPort {
  readonly protocol: 'tcp' | 'udp'
  readonly port: number
}

/** Where the host and the guests' namespace meet. */
export interface HostSide {
  /** the host's end of the way to the guests; the host's routes lead there */
  readonly link: string
  /** interface through which guests reach the outside, and whose packets the host forwards to them */
  readonly device: string
  /** IPv4 address of nobody, as whom the host's own loopback speaks to guests: what they answer comes back by `link` */
  readonly loopbackAs: string
}

/** What a client is told of the network. */
export interface NetworkFacts {
  /** CIDR of the guests */
  readonly subnet: string
  /** IPv4 address of the gateway, as guests see it */
  readonly gateway: string
  /** whether guests reach each other */
  readonly guestToGuest: boolean
  /** whether nobody outside is reached, or reaches a guest */
  readonly isClosed?: boolean
}

export interface NetworkService {
  readonly facts: NetworkFacts
  /** as configured: an interface of the host, `auto` or `none` */
  readonly uplink: string
  /**
   * Lets new connections from outside come to these ports of an instance, and to no others; those that are no more allowed end. Until the server or the instance ends: whoever sets it does so again
   * after a start.
   */
  setInbound (instanceId: string, ports: readonly InboundPort[]): Promise<void>
  /** The host's end of the way to guests, whether it is there or not; undefined: the network is closed, so that nobody outside reaches a guest. */
  readonly hostLink: string | undefined
  /** The host's side of the network as it is now; undefined while there is no guest, and when the network is closed. */
  readonly hostSide: HostSide | undefined
  /** What guests send to these ports goes to the proxy from now on, whatever else is redirected now; until then it is what an earlier server has said, or 80 and 443. Connections of before go on. */
  mediate (ports: MediatedPorts): Promise<void>
  /** The proxy's place, which is made when it is not there. */
  proxyPlace (): Promise<ProxyPlace>
  /** Reserves an address and a MAC; idempotent. @throws insufficient_resources when the CIDR is full */
  allocate (instanceId: string): Promise<NetworkAddress>
  /** The address of an instance that has one. */
  addressOf (instanceId: string): NetworkAddress | undefined
  /** Gives the address back, and removes all that is left of the instance. Idempotent. */
  release (instanceId: string): Promise<void>
  /**
   * Releases every address whose instance is not among these: for whoever knows the instances, at its start, since an earlier server
   * may have been killed between allocating and noting the instance.
   */
  retainOnly (instanceIds: Iterable<string>): Promise<void>
  /**
   * Makes the TAP with its rules, which are in force before it is up. Replaces one that is there already.
   * @param uid the VM's user; `undefined` when it is the server's own
   */
  plug (instanceId: string, uid: number | undefined, limits: NetworkLimits, egress: EgressMode): Promise<NetworkPort>
  /** Changes what a plugged VM is allowed, at once. */
  setEgress (instanceId: string, egress: EgressMode): Promise<void>
  /** Removes the TAP with its rules, and ends its connections; the address stays. Idempotent. */
  unplug (instanceId: string): Promise<void>
  /** Takes the TAP of a VM that is paused out of use, with its rules in place, and ends its connections: nothing reaches it, and nothing of it reaches anybody. */
  suspend (instanceId: string): Promise<void>
  /** Puts the TAP of such a VM, which has not been replaced, in use again. False when there is none any more: this VM has no network then. */
  resume (instanceId: string): Promise<boolean>
  counters (instanceId: string): Promise<NetworkCounters | undefined>
  /** Those of all guests. Rejects when the kernel cannot be asked. */
  inbound (): Promise<readonly InboundConnection[]>
  /** What holds for such an instance, bytes per second; absent: no limit. With endless vCPUs that is what the host can carry, where it is configured. */
  limitsOf (limits: NetworkLimits): Pick<NetworkLimits, 'downloadBps' | 'uploadBps'>
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly network: NetworkService
  }
}
