// Runs in a guest: a WebSocket with text, bytes, pings, compression and an orderly end. Prints what came of it as JSON.
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { WebSocket } from 'ws'

const [url = '', mock = ''] = process.argv.slice(2)
const headers = { authorization: `Bearer ${mock}` }
const found: Record<string, unknown> = {}
const socket = new WebSocket(url, 'echo.v1', { headers, perMessageDeflate: { threshold: 0 } })
const heard: Buffer[] = []
let wake = (): void => {}
socket.on('message', (data: Buffer) => {
  heard.push(data)
  wake()
})

async function next (): Promise<Buffer> {
  while (heard.length === 0) await new Promise<void>((resolve) => { wake = resolve })
  return heard.shift() ?? Buffer.alloc(0)
}

await once(socket, 'open')
found['welcome'] = String(await next())
found['protocol'] = socket.protocol
found['extensions'] = socket.extensions
socket.send('some words, some words, some words')
found['text'] = String(await next())
const bytes = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => index * 7 % 251))
socket.send(bytes)
found['bytes'] = (await next()).equals(bytes)
const pong = once(socket, 'pong')
socket.ping('are you there?')
found['pong'] = String((await pong as [Buffer])[0])
const closed = once(socket, 'close') as Promise<[number]>
socket.close(4321, 'done')
found['closed'] = (await closed)[0]

const refused = new WebSocket(url.replace('/echo', '/refused'), { headers })
refused.on('error', () => {})
const [, answer] = await once(refused, 'unexpected-response') as [unknown, IncomingMessage]
const parts: Buffer[] = []
for await (const part of answer) parts.push(part as Buffer)
found['refused'] = [answer.statusCode, answer.headers['x-why'], Buffer.concat(parts).toString()]
console.log(JSON.stringify(found))
process.exit(0)
