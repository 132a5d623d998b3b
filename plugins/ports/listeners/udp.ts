// Holds a UDP port of the host: a datagram wakes the instance if it sleeps, and is kept, within bounds, until it can be delivered. Each peer has a socket of its own towards the guest,
// by which the answers find back.
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import type { Listener, Target } from './target.ts'

export interface UdpBounds {
  readonly heldDatagrams: number
  readonly idleMs: number
}

/** limit on all datagrams that one port keeps */
const MAX_HELD_BYTES = 1024 * 1024

interface Peer {
  readonly life: AbortController
  readonly held: Buffer[]
  /** whether the instance was awake for it: the peer is the VM's from then on */
  isAwake: boolean
  guest: Socket | undefined
  idle: NodeJS.Timeout
}

/** @throws the system's error for the place, such as EADDRINUSE */
export async function listenUdp (address: string, port: number, target: Target, { heldDatagrams, idleMs }: UdpBounds): Promise<Listener> {
  const peers = new Map<string, Peer>()
  const socket = createSocket({ type: 'udp4' })
  let heldCount = 0
  let heldBytes = 0

  const begin = (key: string, to: { readonly address: string, readonly port: number }): Peer | undefined => {
    const leave = target.admit(to.address)
    if (leave === undefined) return undefined
    const lease = target.lease()
    const life = new AbortController()
    const peer: Peer = { life, held: [], isAwake: false, guest: undefined, idle: setTimeout(() => { life.abort() }, idleMs) }
    peers.set(key, peer)
    life.signal.addEventListener('abort', () => {
      clearTimeout(peer.idle)
      peers.delete(key)
      for (const datagram of peer.held.splice(0)) drop(datagram)
      peer.guest?.close()
      lease.release()
      leave()
    }, { once: true })
    open(peer, to).catch((error: unknown) => {
      if (!life.signal.aborted) target.refused(error)
      life.abort()
    })
    return peer
  }

  const drop = (datagram: Buffer): void => {
    heldCount--
    heldBytes -= datagram.length
  }

  /** Wakes the instance, and delivers the datagrams that have come meanwhile. */
  const open = async (peer: Peer, to: { readonly address: string, readonly port: number }): Promise<void> => {
    const { ip } = await target.awake(peer.life.signal, to.address)
    peer.isAwake = true
    const guest = createSocket('udp4')
    guest.on('error', () => { peer.life.abort() })
    const localAddress = target.localAddress()
    guest.bind(localAddress === undefined ? {} : { address: localAddress })
    await once(guest, 'listening')
    guest.connect(target.port, ip)
    await once(guest, 'connect')
    if (peer.life.signal.aborted) {
      guest.close()
      return
    }
    peer.guest = guest
    guest.on('message', (answer) => {
      peer.idle.refresh()
      socket.send(answer, to.port, to.address, () => {})
    })
    for (const datagram of peer.held.splice(0)) {
      drop(datagram)
      guest.send(datagram, () => {})
    }
  }

  socket.on('message', (datagram, from) => {
    const key = `${from.address}:${from.port}`
    const peer = peers.get(key) ?? begin(key, from)
    if (peer === undefined) return
    peer.idle.refresh()
    if (peer.guest !== undefined) return peer.guest.send(datagram, () => {})
    if (heldCount >= heldDatagrams || heldBytes + datagram.length > MAX_HELD_BYTES) return
    heldCount++
    heldBytes += datagram.length
    peer.held.push(datagram)
  })
  const failed = once(socket, 'error').then(([error]) => { throw error })
  failed.catch(() => {})
  socket.bind({ address, port, exclusive: true })
  await Promise.race([once(socket, 'listening'), failed])
  socket.on('error', (error) => { target.refused(error) })
  const end = (those: (peer: Peer) => boolean): void => { for (const peer of [...peers.values()].filter(those)) peer.life.abort() }
  return {
    cut () { end(({ isAwake }) => isAwake) },
    async close () {
      end(() => true)
      const closed = once(socket, 'close')
      socket.close()
      await closed
    }
  }
}
