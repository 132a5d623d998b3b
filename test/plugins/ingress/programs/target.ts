// A program in an instance: tells what it heard, streams, keeps WebSockets, and says to nginx what it must not obey.
import { createServer } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { createServer as createRawServer } from 'node:net'
import { WebSocketServer } from 'ws'

const [port = '8080', name = 'target'] = process.argv.slice(2)
const sockets = new WebSocketServer({ noServer: true })

/** what a browser has told */
let result = ''

/** Tells what the browser spoke, what a request of its own got, and what came over a WebSocket. */
const PAGE = `<!doctype html><title>page</title><script type="module">
const { url } = await (await fetch('/from-script')).json()
const socket = new WebSocket('wss://' + location.host + '/')
socket.onopen = () => socket.send('from a browser')
socket.onmessage = ({ data }) => fetch('/result', { method: 'POST', body: [performance.getEntriesByType('navigation')[0].nextHopProtocol, url, data].join(' ') })
</script>`

const server = createServer((request, response) => {
  const path = (request.url ?? '').split('?')[0] ?? ''
  if (path === '/stream') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: first\n\n')
    // The second only when the client has had the first, and asks for it by closing its side: here by time alone, for there is no other way back.
    request.on('close', () => { response.end() })
    return
  }
  if (path === '/upload') {
    // Says of the first bytes before the rest has come.
    response.writeHead(200)
    request.on('data', (bytes: Buffer) => { response.write(`${bytes.length}\n`) })
    request.on('end', () => { response.end('end\n') })
    return
  }
  if (path === '/large') {
    response.writeHead(200)
    response.end(Buffer.alloc(64 * 2 ** 20))
    return
  }
  if (path === '/redirecting') {
    response.writeHead(200, { 'x-accel-redirect': '/.berth-decide', 'x-accel-expires': '1000' }).end('only words')
    return
  }
  if (path === '/page') {
    response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE)
    return
  }
  if (path === '/result') {
    request.on('data', (bytes: Buffer) => { result += bytes.toString() })
    request.on('end', () => { response.end(result) })
    return
  }
  if (path === '/failing') {
    response.writeHead(503).end('the program itself')
    return
  }
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify({ name, method: request.method, url: request.url, headers: request.headers, raw: request.rawHeaders.length / 2 }))
})
server.on('upgrade', (request, socket, head) => {
  sockets.handleUpgrade(request, socket, head, (client) => { client.on('message', (text: Buffer) => { client.send(`${name} ${text.toString()}`) }) })
})
// gRPC, as far as the wire shows it: a message, and the status in a trailer.
createHttp2Server().on('stream', (stream, headers) => {
  const parts: Buffer[] = []
  stream.on('data', (bytes: Buffer) => { parts.push(bytes) })
  stream.on('end', () => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => { stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': String(headers['x-forwarded-proto']) }) })
    stream.end(Buffer.concat(parts))
  })
}).listen(Number(port) + 1, '0.0.0.0')
// A program that answers more than it was asked: what follows its answer must be nobody's.
createRawServer((socket) => {
  socket.on('error', () => {})
  socket.once('data', () => { socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison') })
}).listen(Number(port) + 2, '0.0.0.0')
server.listen(Number(port), '0.0.0.0', () => { process.stdout.write('ready\n') })
