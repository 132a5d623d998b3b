// Connects to a guest's agent through a VMM that carries vsock over a unix socket (Firecracker, Cloud Hypervisor): one line asks for the port, and what follows is the stream.
import type { Socket } from 'node:net'
import { connectUnix } from '../../process/unix-socket.ts'
import { GuestUnreachable } from './errors.ts'

/** the port on which the agent listens, and those that it calls for its program's output and its report: plugins/guest/init/PROTOCOL.md */
export const AGENT_PORT = 1024
export const OUTPUT_PORT = 1025
export const REPORT_PORT = 1026
/** kernel arguments that make berth-init use them */
export const VSOCK_ARGUMENT = 'berth.ports=vsock'
/** kernel argument for a machine that has no power switch */
export const RESET_ARGUMENT = 'berth.off=reset'
/** A guest's own address. It is the same in all VMs: each has its own socket. */
export const GUEST_CID = 3

// `OK 1073741824`
const MOST_LINE_BYTES = 32

/**
 * Connects to a port of the guest.
 * @param timeoutMs for the answer: a VMM silently drops a request while the guest's driver is not up
 * @throws GuestUnreachable when nobody listens there, or nobody answers
 */
export async function connectGuest (folder: string, socketName: string, port: number, timeoutMs: number): Promise<Socket> {
  const socket = await connectUnix(folder, socketName).catch((error: unknown) => { throw GuestUnreachable.from(error, 'the VMM takes no connection') })
  try {
    socket.write(`CONNECT ${port}\n`)
    await answered(socket, timeoutMs)
    return socket
  } catch (error) {
    socket.destroy()
    throw error
  }
}

/** Reads one line, which may arrive in pieces and together with the first bytes of the stream; those stay in the socket. */
function answered (socket: Socket, timeoutMs: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let line = ''
    const timer = setTimeout(() => { end(GuestUnreachable(`no answer within ${timeoutMs} ms`)) }, timeoutMs)
    const closed = (): void => end(GuestUnreachable('nobody listens there'))
    const readable = (): void => {
      for (;;) {
        // One byte at a time, so that nothing has to be pushed back.
        const byte: unknown = socket.read(1)
        if (!Buffer.isBuffer(byte)) return
        if (byte[0] === 0x0a) return end(line.startsWith('OK ') ? undefined : GuestUnreachable('the VMM answered something else than OK'))
        line += byte.toString('latin1')
        if (line.length > MOST_LINE_BYTES) return end(GuestUnreachable('the VMM\'s answer has no end'))
      }
    }
    const end = (failure: Error | undefined): void => {
      clearTimeout(timer)
      socket.off('readable', readable)
      socket.off('close', closed)
      if (failure === undefined) resolve()
      else reject(failure)
    }
    socket.on('readable', readable)
    socket.once('close', closed)
  })
}
