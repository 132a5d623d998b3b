// The real application with the real plugins instances and ingress and a real nginx, on a scripted host, whose guests' programs listen on addresses of this machine's loopback.
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { plugin } from '../../../plugins/ingress/index.ts'
import { startApp, type StartOptions, type TestApp } from '../instances/app.ts'
import { ScriptedHost } from '../instances/scripted.ts'
import { freePort } from '../../helpers/free-port.ts'

export interface Reply { readonly status: number, readonly body: string }

/** where a server takes requests */
export interface ListenPlace { readonly address: string, readonly http: number, readonly https: number }

export interface IngressApp extends TestApp {
  readonly place: ListenPlace
  /** an instance that runs, whose program answers with its name and the path */
  makeGuest (name: string, fields?: Record<string, unknown>): Promise<string>
  /** by plain HTTP, of NAME.test */
  ask (name: string, path?: string): Promise<Reply>
}

export const PROGRAM = 8080

export interface IngressOptions extends StartOptions {
  /** another address for the server that comes after one that is not ended in truth */
  readonly place?: ListenPlace
  readonly ingress?: Record<string, unknown>
}

export async function startIngress (t: Test, { place: given, ingress = {}, ...options }: IngressOptions = {}): Promise<IngressApp> {
  const host = options.host ?? new ScriptedHost()
  const network = host.connect()
  host.onConnect ??= async (port, address) => {
    const connection = connect(port, address)
    return await once(connection, 'connect').then(() => connection, () => undefined)
  }
  network.namespace = '/proc/self/ns/net'
  const place = given ?? { address: '127.0.0.1', http: await freePort('127.0.0.1'), https: await freePort('127.0.0.1') }
  const { address, http, https } = place
  const app = await startApp(t, {
    ...options,
    host,
    plugins: [plugin],
    sections: { ...options.sections, ingress: { config: { listen: { address, http: [http], https: [https] }, limits: { workers: 1, connections: 1024 }, ...ingress } } },
    server: { stopInstancesOnExit: true, ...options.server }
  })
  return {
    ...app,
    place,
    async makeGuest (name, fields = {}) {
      const id = await app.make(name, fields)
      const known = network.addressOf(id)
      if (known === undefined) throw new Error('no address')
      const ip = `127.${randomInt(1, 255)}.${randomInt(1, 255)}.${randomInt(1, 255)}`
      network.addresses.set(id, { ...known, ip })
      const server = createServer((asked, response) => { response.end(`${name} ${asked.url ?? ''}`) }).listen(PROGRAM, ip)
      await once(server, 'listening')
      t.teardown(() => { server.close() })
      await app.waitFor(name, 'Running')
      return id
    },
    ask: async (name, path = '/') => await askAt(place, name, path)
  }
}

async function askAt ({ address, http }: ListenPlace, name: string, path: string): Promise<Reply> {
  const asked = request({ host: address, port: http, path, headers: { host: `${name}.test` }, agent: false })
  asked.end()
  const [response] = await once(asked, 'response')
  return { status: response.statusCode, body: await text(response) }
}
