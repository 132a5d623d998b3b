// The host's connection to a program in the guest.
import type { Duplex } from 'node:stream'
import { reasonOf } from './cancelled.ts'
import { refuseOn, type Channel } from './channel.ts'
import { GuestConnection } from './connection.ts'
import type { OpenChannel } from './listen.ts'
import { encodeConnect } from './messages.ts'
import { ProtocolViolation } from './violation.ts'

/** Resolves when the connection is established. */
export async function connectTo (open: OpenChannel, port: number, address: string | undefined, signal: AbortSignal): Promise<Duplex> {
  signal.throwIfAborted()
  return await new Promise<Duplex>((resolve, reject) => {
    const channel: Channel<void> = open({
      input: true,
      outputs: [1],
      decode (fields) {
        refuseOn(fields)
        if (!channel.output(1).endedByGuest) throw new ProtocolViolation('ended a connection before its end')
      },
      begun () {
        signal.removeEventListener('abort', cancel)
        const connection = new GuestConnection(channel)
        if (signal.aborted) connection.destroy()
        resolve(connection)
      }
    }, encodeConnect(port, address))
    function cancel (): void {
      channel.control({ op: 'cancel' })
      reject(reasonOf(signal))
    }
    signal.addEventListener('abort', cancel, { once: true })
    channel.result.catch(reject).finally(() => { signal.removeEventListener('abort', cancel) })
  })
}
