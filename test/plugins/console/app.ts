// A server with the console, and a browser's manners in a few lines.
import type { Test } from 'tap'
import { Type } from 'typebox'
import { WebSocket } from 'ws'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { plugin as consolePlugin } from '../../../plugins/console/index.ts'
import { plugin as events } from '../../../plugins/events/index.ts'
import { ADMIN_KEY, bareApp, type BareApp } from '../../core/bare-app.ts'

/** A plugin with what the console's sessions are used for: something that changes, and a WebSocket. */
const target = definePlugin({
  manifest: { id: 'target', provides: [], requires: [], scopes: ['thing:write'], config: Type.Object({}, { additionalProperties: false }) },
  create: () => ({
    routes: async (app) => {
      app.post('/things', { config: { scope: 'thing:write' } }, async (request) => ({ by: request.principal?.id }))
      app.get('/things/socket', { config: { scope: 'thing:write' }, websocket: true }, (socket) => { socket.on('message', (data) => { socket.send(data) }) })
    }
  })
})

export interface ConsoleApp extends BareApp {
  readonly url: string
  readonly origin: string
  /** Logs in; the cookie as the browser sends it. */
  logIn (key?: string, headers?: Record<string, string>): Promise<Answer>
  /** As our page sends it. */
  call (method: string, path: string, options?: { readonly cookie?: string, readonly headers?: Record<string, string | undefined>, readonly body?: unknown }): Promise<Answer>
  makeKey (body: Record<string, unknown>): Promise<{ readonly id: string, readonly key: string }>
  /** The code with which a WebSocket was refused, or the open socket. */
  socket (cookie: string, protocols: string[], origin?: string): Promise<number | WebSocket>
}

export interface Answer { readonly status: number, readonly body: Record<string, unknown>, readonly cookie: string, readonly setCookie: string, readonly headers: Headers }

export async function startConsole (t: Test, config: Record<string, unknown> = {}): Promise<ConsoleApp> {
  const bare = await bareApp(t, { plugins: { console: { config } } }, { plugins: [consolePlugin, events, target] })
  await bare.app.start()
  const url = bare.app.address()
  const call: ConsoleApp['call'] = async (method, path, { cookie, headers = {}, body } = {}) => {
    const sent = Object.entries({ origin: url, 'x-berth-console': '1', 'sec-fetch-site': 'same-origin', cookie, ...body === undefined ? {} : { 'content-type': 'application/json' }, ...headers })
    const answer = await fetch(url + path, {
      method, redirect: 'manual', headers: sent.flatMap(([name, value]): Array<[string, string]> => value === undefined ? [] : [[name, value]]), ...body === undefined ? {} : { body: JSON.stringify(body) }
    })
    const text = await answer.text()
    const setCookie = answer.headers.get('set-cookie') ?? ''
    return { status: answer.status, body: text.startsWith('{') ? JSON.parse(text) : {}, setCookie, cookie: setCookie.split(';')[0] ?? '', headers: answer.headers }
  }
  return {
    ...bare,
    url,
    origin: url,
    call,
    logIn: async (key = ADMIN_KEY, headers = {}) => await call('POST', '/console/session', { body: { key }, headers }),
    async makeKey (body) {
      const answer = await fetch(`${url}/keys`, { method: 'POST', headers: { authorization: `Bearer ${ADMIN_KEY}`, 'content-type': 'application/json' }, body: JSON.stringify(body) })
      return await answer.json() as { id: string, key: string }
    },
    socket: async (cookie, protocols, origin = url) => await new Promise((resolve, reject) => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/things/socket`, protocols, { headers: { cookie, origin } })
      socket.once('open', () => { resolve(socket) })
      socket.once('unexpected-response', (request, response) => {
        resolve(response.statusCode ?? 0)
        request.destroy()
      })
      socket.once('error', reject)
    })
  }
}
