// A kernel with the tracing plugin and a plugin that does what others do: jobs, host commands, errors.
import type { LightMyRequestResponse } from 'fastify'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Test } from 'tap'
import { Type } from 'typebox'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { openSpan, traced } from '../../../core/tracing/span.ts'
import { plugin as tracing } from '../../../plugins/tracing/index.ts'
import { authorization, bareApp, type BareApp } from '../../core/bare-app.ts'

/** spans of one request to /many, beside its own */
export const MANY = 2000

const worker = definePlugin({
  manifest: { id: 'worker', provides: [], requires: ['jobs', 'commands', 'log'], config: Type.Object({}, { additionalProperties: false }) },
  create: ({ jobs, commands, log }) => ({
    async routes (http) {
      const queue = jobs.queue('things', { concurrency: 1 })
      http.post('/work/:id', { config: { scope: 'key:read' }, schema: { body: Type.Object({}) } }, async () => {
        await traced('outer', {}, async () => await queue.push('one', async () => {
          log.info('at work')
          await commands.run('/bin/echo', ['hunter2'], { env: { SECRET: 'hunter2' } })
        }))
        return {}
      })
      http.get('/memory/:what', { config: { scope: 'key:read', oneSpan: true } }, async (request) => {
        if (request.url.endsWith('wrong')) throw InvalidRequest('it is wrong')
        if (request.url.endsWith('broken')) throw new Error('it is broken')
        openSpan('below it')?.end()
        return {}
      })
      http.get('/again', { config: { scope: 'key:read' } }, async () => {
        const span = openSpan('set again', { attributes: { kept: true, 'berth.tries': 1, share: 0.5 } })
        span?.set({ 'berth.tries': 2 })
        span?.end()
        return {}
      })
      http.get('/quick', { config: { scope: 'key:read' } }, async () => ({}))
      http.get('/many', { config: { scope: 'key:read' } }, async () => {
        for (let count = 0; count < MANY; count++) openSpan('one of many')?.end()
        return {}
      })
      http.get('/wrong', { config: { scope: 'key:read' } }, async () => { throw InvalidRequest('it is wrong') })
      http.get('/broken', { config: { scope: 'key:read' } }, async () => await commands.run('/bin/sh', ['-c', 'echo hunter2 >&2; exit 3']))
      http.get('/held', { config: { scope: 'key:read' } }, async () => {
        log.info('held')
        return await new Promise(() => {})
      })
      http.get('/stream', { config: { scope: 'key:read', produces: 'text/event-stream' } }, async (_request, reply) => reply.header('content-type', 'text/event-stream').send(Readable.from(endless())))
      http.get('/socket', { config: { scope: 'key:read' }, websocket: true }, (socket) => { socket.send('here') })
      http.get('/later', { config: { scope: 'key:read' } }, async () => {
        // What goes on after the answer is no part of it.
        setTimeout(() => { void traced('too late', {}, async () => {}) }, 50)
        return {}
      })
    }
  })
})

async function * endless (): AsyncGenerator<string> {
  for (;; await sleep(20)) yield ':\n\n'
}

export interface TracedApp extends BareApp {
  /** A request with the admin key. */
  send (method: 'GET' | 'POST', url: string, headers?: Record<string, string>): Promise<LightMyRequestResponse>
}

export async function tracedApp (t: Test, config: Record<string, unknown>): Promise<TracedApp> {
  const made = await bareApp(t, { plugins: { tracing: { config: { interval: '20ms', ...config } } } }, { plugins: [tracing, worker] })
  await made.app.start()
  return {
    ...made,
    send: async (method, url, headers = {}) => await made.app.http.inject({ method, url, headers: { ...authorization, ...headers }, ...method === 'POST' ? { payload: {} } : {} })
  }
}
