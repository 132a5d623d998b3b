// Loopback addresses and ports for one test process: VMs, origins and the proxy each have their own, so that tests run beside one another.
import { createServer } from 'node:net'
import { once } from 'node:events'

/** `127.x.y.last`, the same x and y for everything of this process. */
export function loopback (last: number): string {
  return `127.${1 + process.pid % 250}.${Math.floor(process.pid / 250) % 250}.${last}`
}

/** A port that is free on an address at this moment. */
export async function freePort (address: string): Promise<number> {
  const server = createServer().listen(0, address)
  await once(server, 'listening')
  const place = server.address()
  server.close()
  await once(server, 'close')
  if (place === null || typeof place === 'string') throw new Error('no port was given')
  return place.port
}
