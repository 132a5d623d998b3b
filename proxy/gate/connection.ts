// What is known about one connection of a guest, and whether the host that a request names is the one that the connection is for.
import { parseAuthority } from '../names/canonical-host.ts'
import type { Origin } from '../upstream/origin.ts'
import type { Vm } from '../vms/vm.ts'
import type { GuestWay } from '../workers/contract.ts'
import type { ReasonCode } from './reasons.ts'

export class GuestConnection {
  readonly vm: Vm
  readonly secure: boolean
  /** port that the guest meant */
  readonly port: number
  /** name of the TLS handshake; absent on plain connections */
  readonly serverName: string | undefined
  /** whether anything that could be a request came over it */
  used = false
  /** HTTP/2 streams that are open on it */
  streams = 0
  #written: string | undefined
  #origin: Origin | undefined

  constructor (vm: Vm, serverName: string | undefined, { secure, port }: GuestWay) {
    this.vm = vm
    this.serverName = serverName
    this.secure = secure
    this.port = port
  }

  /**
   * The origin for what a request calls its host, or why there is none. Both names must agree: a request that reached one host's certificate
   * cannot end at another host, nor carry that one's credentials.
   */
  originFor (written: string): Origin | ReasonCode {
    // Nearly every request of a connection names the same host in the same letters.
    if (written === this.#written && this.#origin?.closed === false) return this.#origin
    const authority = parseAuthority(written)
    if (authority === undefined) return 'bad_host'
    if ((authority.port ?? this.port) !== this.port) return 'misdirected'
    if (this.secure && authority.name !== this.serverName) return 'misdirected'
    this.#written = written
    this.#origin = this.vm.origins.get(authority, this)
    return this.#origin
  }
}
