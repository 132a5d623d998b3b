// Says why the server could not listen, and names the key of the configuration.
import { defineError } from '../errors/define.ts'
import { hasCode } from '../errors/system-code.ts'

const CannotListen = defineError('cannot_listen', 'unavailable', (key: string, listen: string, why: string) => `${key}: ${listen} ${why}`)

const REASONS = {
  EADDRINUSE: 'is taken: something else listens there',
  EADDRNOTAVAIL: 'is no address of this host',
  EACCES: 'is not for this user: ports below 1024 need a privilege'
} as const

/** Runs `listen`, and adds the name of the key to a system error. */
export async function listenAt<T> (key: string, address: string, listen: () => Promise<T>): Promise<T> {
  try {
    return await listen()
  } catch (error) {
    for (const [code, why] of Object.entries(REASONS)) if (hasCode(error, code)) throw CannotListen.from(error, key, address, why)
    throw error
  }
}
