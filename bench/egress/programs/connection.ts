// A client's connection to the origin in one of the ways.
import { once } from 'node:events'
import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import type { Way } from '../child.ts'

/** Connects and checks the certificate; sends CONNECT first if the way needs it. */
export async function open ({ to, from, ca, host, connect }: Way, protocol: 'http/1.1' | 'h2', name = nameOf(host)): Promise<TLSSocket> {
  const socket = connectTcp({ host: to.address, port: to.port, noDelay: true, ...from === undefined ? {} : { localAddress: from } })
  await once(socket, 'connect')
  if (connect !== undefined) await tunnel(socket, `${connect.address}:${connect.port}`)
  const secure = connectTls({ socket, servername: name, ca, ALPNProtocols: [protocol] })
  await once(secure, 'secureConnect')
  return secure
}

export function nameOf (host: string): string {
  return host.split(':')[0] ?? ''
}

async function tunnel (socket: Socket, authority: string): Promise<void> {
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n\r\n`)
  let text = ''
  while (!text.includes('\r\n\r\n')) {
    const [chunk]: Buffer[] = await once(socket, 'data')
    text += chunk?.toString('latin1') ?? ''
  }
  if (!/^HTTP\/1\.1 200 /.test(text)) throw new Error(`CONNECT was answered: ${text}`)
}
