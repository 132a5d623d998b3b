// A WebSocket of the API. A page can give it no header, so it sends a ticket that is valid for one connection.
import { call } from './call.ts'

export async function openSocket (path: string): Promise<WebSocket> {
  const { ticket } = await call<{ readonly ticket: string }>('POST', '/console/tickets')
  const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}`, ['berth', `ticket.${ticket}`])
  socket.binaryType = 'arraybuffer'
  return await new Promise((resolve, reject) => {
    socket.addEventListener('open', () => { resolve(socket) }, { once: true })
    socket.addEventListener('error', () => { reject(new Error('The connection was refused. The instance must run, and have an agent.')) }, { once: true })
  })
}
