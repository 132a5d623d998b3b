// A port of the guest's loopback: keeps a few channels waiting for its connections, and opens another for each that got one.
import type { Duplex } from 'node:stream'
import type { GuestListener } from '../contract.ts'
import { refuseOn, type Channel, type ChannelSpec } from './channel.ts'
import { GuestConnection } from './connection.ts'
import { ACCEPT_RETRY_MS, MAX_CONNECTIONS, WAITING_CONNECTIONS } from './limits.ts'
import { encodePortRequest } from './messages.ts'
import { ProtocolViolation } from './violation.ts'

export type OpenChannel = (spec: ChannelSpec<void>, payload: Buffer) => Channel<void>

/** Resolves when the guest listens. */
export async function listenOn (open: OpenChannel, port: number, accept: (connection: Duplex) => void): Promise<GuestListener> {
  return await new Promise<GuestListener>((resolve, reject) => {
    const listener = new Listener(open, port, accept)
    const channel: Channel<void> = open({
      input: false,
      outputs: [],
      decode: refuseOn,
      begun () {
        listener.fill()
        resolve({
          close () {
            if (listener.close()) channel.control({ op: 'cancel' })
          }
        })
      }
    }, encodePortRequest('listen', port))
    channel.result.catch(reject).finally(() => { listener.close() })
  })
}

class Listener {
  readonly #open: OpenChannel
  readonly #port: number
  readonly #accept: (connection: Duplex) => void
  #waiting = 0
  #talking = 0
  #closed = false
  #retry: NodeJS.Timeout | undefined

  constructor (open: OpenChannel, port: number, accept: (connection: Duplex) => void) {
    this.#open = open
    this.#port = port
    this.#accept = accept
  }

  /** False when it was closed already. The guest ends channels that still wait, together with the port. */
  close (): boolean {
    if (this.#closed) return false
    this.#closed = true
    clearTimeout(this.#retry)
    return true
  }

  fill (): void {
    while (!this.#closed && this.#retry === undefined && this.#waiting < WAITING_CONNECTIONS && this.#waiting + this.#talking < MAX_CONNECTIONS) this.#wait()
  }

  #wait (): void {
    let connected = false
    this.#waiting++
    const channel = this.#open({
      input: true,
      outputs: [1],
      decode (fields) {
        refuseOn(fields)
        if (!channel.output(1).endedByGuest) throw new ProtocolViolation('ended a connection before its end')
      },
      begun: () => {
        connected = true
        this.#waiting--
        this.#talking++
        this.#serve(new GuestConnection(channel))
        this.fill()
      }
    }, encodePortRequest('accept', this.#port))
    channel.result.catch(() => {}).finally(() => {
      if (connected) this.#talking--
      else this.#refused()
      this.fill()
    })
  }

  #serve (connection: GuestConnection): void {
    if (this.#closed) connection.destroy()
    else this.#accept(connection)
  }

  /** The guest has no channel left, or is asleep: no event tells when that ends. */
  #refused (): void {
    this.#waiting--
    if (this.#closed || this.#retry !== undefined) return
    this.#retry = setTimeout(() => {
      this.#retry = undefined
      this.fill()
    }, ACCEPT_RETRY_MS)
    this.#retry.unref()
  }
}
