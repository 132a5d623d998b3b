// The connection to a guest's agent: vfkit forwards connections to its socket to the port, without a message. It accepts before the guest does, so only the guest's answer proves that it is there.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { GuestUnreachable } from '../../core/library/vmm/errors.ts'
import { connectUnix } from '../../core/process/unix-socket.ts'
import { AGENT_SOCKET } from './names.ts'

/** The host's first bytes, and the guest's answer: plugins/guest/init/PROTOCOL.md, "Synchronising". The next user of the stream starts over, and drops what came before. */
const KNOCK = Buffer.from([0xb7, 0x42, 0x45, 0x52, 0x54, 0x48, 0x31, 0x0a])
const NONCE_BYTES = 16

/** @param timeoutMs for the guest's first bytes @throws GuestUnreachable */
export async function connectAgent (folder: string, timeoutMs: number): Promise<Socket> {
  const socket = await connectUnix(folder, AGENT_SOCKET).catch((error: unknown) => { throw GuestUnreachable.from(error, 'vfkit takes no connection') })
  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  try {
    socket.write(Buffer.concat([KNOCK, randomBytes(NONCE_BYTES)]))
    const answered = once(socket, 'readable')
    answered.catch(() => {})
    await Promise.race([answered, once(socket, 'close')])
    // An ended stream is readable, too.
    if (socket.destroyed || socket.readableLength === 0) throw GuestUnreachable(`no answer within ${timeoutMs} ms, or nobody listens there`)
    return socket
  } catch (error) {
    socket.destroy()
    throw GuestUnreachable.is(error) ? error : GuestUnreachable.from(error, 'the connection broke')
  } finally {
    clearTimeout(timer)
  }
}
