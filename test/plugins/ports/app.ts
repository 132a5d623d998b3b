// The real application with the plugins instances and ports on a scripted host, whose guests are servers on addresses of this machine's loopback.
import { once } from 'node:events'
import { createSocket } from 'node:dgram'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { randomInt } from 'node:crypto'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { plugin } from '../../../plugins/ports/index.ts'
import { startApp, type StartOptions, type TestApp } from '../instances/app.ts'
import { ScriptedHost } from '../instances/scripted.ts'

export interface PortsApp extends TestApp {
  /** creates an instance that has an address of the loopback, and gives both */
  makeGuest (name: string, fields?: Record<string, unknown>): Promise<{ readonly id: string, readonly ip: string }>
}

export async function startPorts (t: Test, options: StartOptions & { readonly ports?: Record<string, unknown> } = {}): Promise<PortsApp> {
  const host = options.host ?? new ScriptedHost()
  host.connect()
  const app = await startApp(t, { ...options, host, plugins: [plugin, ...options.plugins ?? []], sections: { ...options.sections, ports: { config: options.ports ?? {} } } })
  return {
    ...app,
    async makeGuest (name, fields = {}) {
      const id = await app.make(name, fields)
      const network = host.connect()
      const address = network.addressOf(id)
      if (address === undefined) throw new Error('no address')
      const ip = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`
      network.addresses.set(id, { ...address, ip })
      await app.waitFor(name, 'Running')
      return { id, ip }
    }
  }
}

/** A program of a guest that answers each connection with what it has got, in capitals. */
export async function program (t: Test, ip: string): Promise<{ readonly port: number, readonly connections: () => number }> {
  let connections = 0
  const server: Server = createServer({ allowHalfOpen: true }, (socket: Socket) => {
    connections++
    socket.on('error', () => {})
    socket.on('data', (data) => { socket.write(data.toString().toUpperCase()) })
    socket.on('end', () => { socket.end() })
  })
  server.listen(0, ip, 1024)
  await once(server, 'listening')
  t.teardown(() => { server.close() })
  return { port: (server.address() as AddressInfo).port, connections: () => connections }
}

export async function udpProgram (t: Test, ip: string): Promise<number> {
  const socket = createSocket('udp4')
  socket.on('message', (data, from) => { socket.send(data.toString().toUpperCase(), from.port, from.address) })
  socket.bind(0, ip)
  await once(socket, 'listening')
  t.teardown(() => { socket.close() })
  return socket.address().port
}

/** What is answered to a text until the other side ends. Rejects when it is reset. */
export async function ask (port: number, question: string, address = '127.0.0.1'): Promise<string> {
  const socket = connect({ host: address, port })
  await once(socket, 'connect')
  socket.end(question)
  return await text(socket)
}
