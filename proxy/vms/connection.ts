// One connection of a guest, and whether the host that a request names is the one that the connection is for.
import { admit, destinationOf, type Arrival, type GuestWay } from '../gate/admit.ts'
import type { Origin } from '../upstream/origin.ts'
import type { Services } from './services.ts'
import type { Vm } from './vm.ts'
import type { ReasonCode } from '../contract/reasons.ts'

export class GuestConnection {
  readonly vm: Vm
  readonly secure: boolean
  /** port that the guest connected to */
  readonly port: number
  /** name of the TLS handshake; absent on plain connections */
  readonly serverName: string | undefined
  /** whether anything that could be a request came over it */
  used = false
  /** HTTP/2 streams that are open on it */
  streams = 0
  /** whether its end is looked for, over HTTP/1.1 */
  watched = false
  #written: string | undefined
  #origin: Origin | undefined

  constructor (vm: Vm, serverName: string | undefined, { secure, port }: GuestWay) {
    this.vm = vm
    this.serverName = serverName
    this.secure = secure
    this.port = port
  }

  /** The origin for the host that a request names, or why it is refused: see `destinationOf`. */
  originFor (written: string): Origin | ReasonCode {
    // Nearly every request of a connection names the same host in the same letters.
    if (written === this.#written && this.#origin?.closed === false) return this.#origin
    const destination = destinationOf(written, this)
    if (typeof destination === 'string') return destination
    this.#written = written
    this.#origin = this.vm.origins.get(destination, this)
    return this.#origin
  }

  /** The origin of an admitted request, or why the request is refused. @param requests of this VM that are under way, this one included */
  admit (arrival: Arrival | ReasonCode, requests: number, { limits, audit }: Services): Origin | ReasonCode {
    const admitted = admit(arrival, this, { requests, mostRequests: limits.requests, isRecorded: audit.available })
    if (typeof admitted === 'string') return admitted
    const origin = this.originFor(admitted.host)
    if (typeof origin === 'string') return origin
    return this.secure && this.vm.policy.rulesFor(origin.target.host.name).unavailable ? 'secret_unavailable' : origin
  }
}
