// Ports for programs that are told theirs: they are free when they are given, and stay so until the program listens.
import { once } from 'node:events'
import { createServer } from 'node:net'
import { hasCode } from '../../core/errors/system-code.ts'

// Below those that Linux gives to outgoing connections and to listeners that ask for any (net.ipv4.ip_local_port_range: 32768 to 60999), each of which could take one away again before it is used.
const FIRST = 10_000
const COUNT = 22_000
/** Processes that begin far from one another seldom meet. */
let next = (process.pid * 7919) % COUNT

/** Each one is given once by this process. @param address on which nobody listens at it */
export async function freePort (address: string): Promise<number> {
  for (let tries = 0; tries < COUNT; tries++) {
    const port = FIRST + next
    next = (next + 1) % COUNT
    if (await isFree(address, port)) return port
  }
  throw new Error(`no port of ${address} is free`)
}

async function isFree (address: string, port: number): Promise<boolean> {
  const server = createServer()
  try {
    await once(server.listen(port, address), 'listening')
  } catch (error) {
    if (hasCode(error, 'EADDRINUSE')) return false
    throw error
  }
  server.close()
  await once(server, 'close')
  return true
}
