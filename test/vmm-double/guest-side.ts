// The guest's side of a double: a guest without a kernel behind vsock on unix sockets, as Firecracker and Cloud Hypervisor carry it, or vfkit.
import { rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { AGENT_PORT, OUTPUT_PORT, REPORT_PORT } from '../../core/library/vmm/vsock.ts'
import { FakeGuest } from '../hypervisor-fake/guest.ts'
import type { SavedGuest } from '../hypervisor-fake/script.ts'

/** Where what the guest says goes, with a VMM that has a socket for each port and no word in front of the stream. */
export interface PlainSockets { readonly output: string, readonly report: string }

export class GuestSide {
  readonly #guest: FakeGuest
  readonly #vsock: string
  readonly #server: Server
  readonly #hosts = new Set<Socket>()
  readonly #ways = new Map<number, Way>()
  readonly #plain: PlainSockets | undefined
  #isDeaf = false

  /** @param vsock name of the socket, which must be free @param isPaused whether the VM stands still @param onOff the guest has ended its machine @param plain absent: a port is asked for in one line */
  constructor (vsock: string, memoryBytes: number, saved: SavedGuest | undefined, isPaused: () => boolean, onOff: () => void, plain?: PlainSockets) {
    this.#vsock = vsock
    this.#plain = plain
    const off = (): void => { this.#handedOver().then(onOff, onOff) }
    this.#guest = new FakeGuest(
      { script: {}, files: { vmm: '', output: '', report: '' }, memoryBytes, disks: [], ...saved === undefined ? {} : { saved } },
      (text) => this.#say(OUTPUT_PORT, text), off, isPaused, (text) => this.#say(REPORT_PORT, text)
    )
    this.#server = createServer((socket) => {
      if (this.#isDeaf) socket.on('error', () => {}).pause()
      else if (plain === undefined) this.#welcome(socket)
      else this.#take(socket)
    })
    this.#server.listen(vsock)
  }

  save (): SavedGuest { return this.#guest.save() }

  /** What a snapshot does to a guest's connections; its listeners live. */
  reset (): void {
    for (const host of this.#hosts) host.destroy()
    for (const way of this.#ways.values()) way.socket.destroy()
    this.#ways.clear()
  }

  /** From now on nothing that the host says reaches the guest. */
  deafen (): void {
    this.#isDeaf = true
    for (const host of this.#hosts) host.pause()
  }

  close (): void {
    this.#server.close()
    rmSync(this.#vsock, { force: true })
  }

  /** One line, which may come in pieces, then the stream. */
  #welcome (socket: Socket): void {
    socket.on('error', () => {})
    let line = ''
    const read = (chunk: Buffer): void => {
      line += chunk.toString('latin1')
      const end = line.indexOf('\n')
      if (end < 0) return
      socket.off('data', read)
      if (line.slice(0, end) !== `CONNECT ${AGENT_PORT}`) {
        socket.destroy()
        return
      }
      const rest = Buffer.from(line.slice(end + 1), 'latin1')
      // In two pieces, as it may come.
      socket.write('OK 10737')
      socket.write('41824\n')
      this.#take(socket)
      if (rest.length > 0) socket.unshift(rest)
    }
    socket.on('data', read)
  }

  #take (socket: Socket): void {
    for (const host of this.#hosts) host.destroy()
    this.#hosts.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => this.#hosts.delete(socket))
    this.#guest.serve(socket)
  }

  #say (port: number, text: string): void {
    let way = this.#ways.get(port)
    if (way === undefined || way.socket.destroyed) {
      way = new Way(connect(this.#plain === undefined ? `${this.#vsock}_${port}` : port === OUTPUT_PORT ? this.#plain.output : this.#plain.report))
      this.#ways.set(port, way)
    }
    way.say(text)
  }

  async #handedOver (): Promise<void> {
    await Promise.all([...this.#ways.values()].map((way) => way.done()))
  }
}

/** A connection to the host whose bytes are acknowledged. */
class Way {
  readonly socket: Socket
  #sent = 0
  #taken = 0
  #rest = Buffer.alloc(0)
  #waiting: Array<() => void> = []

  constructor (socket: Socket) {
    this.socket = socket
    socket.on('error', () => {})
    socket.on('close', () => this.#wake())
    socket.on('data', (chunk: Buffer) => {
      this.#rest = Buffer.concat([this.#rest, chunk])
      for (; this.#rest.length >= 8; this.#rest = this.#rest.subarray(8)) this.#taken = Number(this.#rest.readBigUInt64LE(0))
      if (this.#taken === this.#sent) this.#wake()
    })
  }

  say (text: string): void {
    this.#sent += Buffer.byteLength(text)
    this.socket.write(text)
  }

  done (): Promise<void> {
    if (this.#taken === this.#sent || this.socket.destroyed) return Promise.resolve()
    return new Promise((resolve) => { this.#waiting.push(resolve) })
  }

  #wake (): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting = []
  }
}
