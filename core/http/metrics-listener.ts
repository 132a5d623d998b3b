// Prometheus text at /metrics, on a separate listener. It asks for no key, so it belongs on loopback.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Registry } from 'prom-client'
import type { Logger } from '../contracts/services.ts'
import { MetricsText } from '../metrics/text.ts'

export interface MetricsListener {
  /** the port that it listens on */
  readonly port: number
  close (): Promise<void>
}

/** Listens on `host:port`. */
export async function startMetricsListener (config: { readonly listen: string }, registry: Registry, log: Logger): Promise<MetricsListener> {
  const metrics = new MetricsText(registry, log)
  const { hostname, port } = new URL(`http://${config.listen}`)
  const server = createServer((request, response) => {
    if (request.url?.split('?')[0] !== '/metrics') {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('only /metrics is here\n')
      return
    }
    void metrics.read().then((text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text))
  })
  // URL omits port 80, the default of http
  server.listen(port === '' ? 80 : Number(port), hostname.replace(/^\[|\]$/g, ''))
  await once(server, 'listening')
  return { port: addressOf(server).port, close: () => close(server) }
}

function addressOf (server: Server): AddressInfo {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the metrics listener has no port')
  return address
}

async function close (server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}
