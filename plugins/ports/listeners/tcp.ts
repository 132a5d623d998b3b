// Holds a TCP port of the host: each connection wakes the instance if it sleeps, and is relayed to it.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { within } from '../../../core/jobs/deadline.ts'
import type { Listener, Target } from './target.ts'

const CONNECT_MS = 10_000
/** How long a program that was just woken, or started, may take until it listens. */
const LISTENS_WITHIN_MS = 10_000
const BETWEEN_TRIES_MS = 50
const BACKLOG = 1024
/** Of both sides: one that vanishes without a word would hold its connection, its lease and its place for ever. The kernel asks after this long of silence. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 60_000 } as const

/** @throws the system's error for the place, such as EADDRINUSE */
export async function listenTcp (address: string, port: number, target: Target): Promise<Listener> {
  const open = new Set<AbortController>()
  /** those whose instance was awake for them */
  const relayed = new Set<AbortController>()
  // Nothing is read before the guest is connected: the kernel buffers a little, and the client waits.
  const server = createServer({ allowHalfOpen: true, pauseOnConnect: true, ...KEEP_ALIVE }, (client) => {
    const life = new AbortController()
    open.add(life)
    serve(client, target, life, () => { relayed.add(life) }).catch((error: unknown) => { target.refused(error) }).finally(() => {
      open.delete(life)
      relayed.delete(life)
      client.destroy()
    })
  })
  server.listen({ host: address, port, backlog: BACKLOG, exclusive: true })
  await once(server, 'listening')
  server.on('error', (error) => { target.refused(error) })
  return {
    cut () { for (const life of relayed) life.abort() },
    async close () {
      const closed = once(server, 'close')
      server.close()
      for (const life of open) life.abort()
      await closed
    }
  }
}

/** @param isAwake called once the instance is awake: the connection is the VM's from then on */
async function serve (client: Socket, target: Target, life: AbortController, isAwake: () => void): Promise<void> {
  const address = client.remoteAddress ?? ''
  const leave = target.admit(address)
  if (leave === undefined) {
    client.resetAndDestroy()
    return
  }
  const lease = target.lease()
  // A client that leaves ends its wait. Unread bytes may precede its end, so only a reset is noticed meanwhile.
  const gone = (): void => { life.abort() }
  client.on('error', gone)
  client.on('close', gone)
  life.signal.addEventListener('abort', () => { client.resetAndDestroy() }, { once: true })
  try {
    const { ip, woken } = await target.awake(life.signal, address)
    isAwake()
    const guest = await reach(ip, target, woken, life.signal)
    // From now on a client that is closed has heard all and said all, and what it has said may still be on its way to the guest.
    client.off('close', gone)
    await relay(client, guest, life.signal)
  } catch (error) {
    if (life.signal.aborted) return
    client.resetAndDestroy()
    throw error
  } finally {
    lease.release()
    leave()
  }
}

async function reach (ip: string, target: Target, woken: boolean, signal: AbortSignal): Promise<Socket> {
  for (const until = performance.now() + LISTENS_WITHIN_MS; ;) {
    try {
      return await connected(ip, target, signal)
    } catch (error) {
      const isRefused = error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
      if (!woken || !isRefused || signal.aborted || performance.now() > until) throw error
      await sleep(BETWEEN_TRIES_MS, undefined, { signal })
    }
  }
}

async function connected (host: string, target: Target, signal: AbortSignal): Promise<Socket> {
  const localAddress = target.localAddress()
  const socket = connect({ host, port: target.port, allowHalfOpen: true, ...KEEP_ALIVE, ...localAddress === undefined ? {} : { localAddress } })
  try {
    await within(CONNECT_MS, [signal], async (limited) => { await once(socket, 'connect', { signal: limited }) })
    return socket
  } catch (error) {
    socket.on('error', () => {})
    socket.destroy()
    const isLate = error instanceof Error && error.name === 'AbortError' && !signal.aborted
    throw isLate ? new Error(`the instance took no connection to port ${target.port} within ${CONNECT_MS / 1000} s`) : error
  }
}

/** Relays both directions, each until its own end; a reset of one side, and a cut, reset the other: an end would say that all has been said. */
async function relay (client: Socket, guest: Socket, signal: AbortSignal): Promise<void> {
  client.setNoDelay(true)
  guest.setNoDelay(true)
  await new Promise<void>((resolve) => {
    const ended = { client: false, guest: false }
    const done = (side: 'client' | 'guest') => (): void => {
      ended[side] = true
      if (ended.client && ended.guest) resolve()
    }
    const broken = (other: Socket) => (): void => {
      other.resetAndDestroy()
      resolve()
    }
    client.on('error', broken(guest))
    guest.on('error', broken(client))
    const cut = (): void => {
      guest.resetAndDestroy()
      client.resetAndDestroy()
      resolve()
    }
    signal.addEventListener('abort', cut, { once: true })
    if (signal.aborted) return cut()
    client.once('close', done('client'))
    guest.once('close', done('guest'))
    client.pipe(guest)
    guest.pipe(client)
  })
  guest.destroy()
}
