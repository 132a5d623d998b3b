// A connection to a port of the guest: a program may listen at the address of the instance, at loopback, or at both.
import type { Duplex } from 'node:stream'
import type { GuestLink } from '../../guest/contract.ts'
import { isRefusal } from './guest-errors.ts'

export const [EINVAL, ECONNREFUSED] = [22, 111]
export const OLDER_GUEST = 'the guest was started by an older server, whose guests cannot be asked for a port; start it again'

const LOOPBACK = '127.0.0.1'

/** @param address of the instance in its network, if it has one */
export async function callPort (link: GuestLink, port: number, address: string | undefined, signal: AbortSignal): Promise<Duplex> {
  if (address === undefined) return await link.connect(port, { signal })
  try {
    return await link.connect(port, { address, signal })
  } catch (error) {
    if (!isRefusal(error) || error.errno !== ECONNREFUSED) throw error
    return await link.connect(port, { address: LOOPBACK, signal })
  }
}
