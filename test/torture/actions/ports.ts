// Ports of the host are published for instances and taken away, and callers come, also while the instance sleeps.
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { HOST_PORTS, PROGRAM_PORT, VMS, type Choose } from './action.ts'

const HOST = '127.0.0.1'
/** waking takes a while under the load of emulated guests */
const CALL_MS = 30_000

export const publish: Choose = (random) => {
  const [vm, port, protocol] = [random.pick(VMS), random.pick(HOST_PORTS), random.pick(['tcp', 'tcp', 'udp'])]
  return { text: `publish ${protocol} ${port} for ${vm}`, run: async (world) => (await world.call('POST', `/instances/${vm}/ports`, { instance_port: PROGRAM_PORT, host_port: port, protocol })).summary }
}

export const unpublish: Choose = (random) => {
  const place = random.below(100)
  return {
    text: `take port ${place} away`,
    run: async (world) => {
      const ports = (await world.call('GET', '/ports')).items()
      const port = ports[place % ports.length]
      return port === undefined ? 'none' : (await world.call('DELETE', `/instances/${String(port['instance_id'])}/ports/${String(port['id'])}`)).summary
    }
  }
}

/** What it says is the guest's; that it ends is ours. */
export const callPort: Choose = (random) => {
  const port = random.pick(HOST_PORTS)
  return {
    text: `call port ${port}`,
    run: async () => {
      const socket = connect(port, HOST)
      let heard = ''
      socket.on('data', (piece: Buffer) => { heard += piece.toString('latin1') })
      socket.on('connect', () => { socket.write('GET / HTTP/1.0\r\n\r\n') })
      const closed = once(socket, 'close').then(() => 'closed', (error: unknown) => error instanceof Error ? error.message : String(error))
      const how = await Promise.race([closed, delay(CALL_MS, 'silence')])
      socket.destroy()
      return `${how}: ${heard.split('\r\n')[0] ?? ''}`
    }
  }
}
