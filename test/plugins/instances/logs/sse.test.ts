// The stream of GET logs over a real connection: what happens when either side goes.
// Own process: it measures the memory of buffers, and counts open files.
import { readdir, readlink } from 'node:fs/promises'
import Hypeman from '@onkernel/hypeman'
import t from 'tap'
import { berth } from '../../../cli/berth.ts'
import { ADMIN_KEY } from '../../../core/bare-app.ts'
import { startApp, type TestApp } from '../app.ts'
import { until } from '../../../helpers/eventually.ts'

async function follow ({ app }: TestApp, signal: AbortSignal): Promise<Response> {
  return await fetch(`${app.address()}/instances/web/logs?follow=true`, { headers: { authorization: `Bearer ${ADMIN_KEY}` }, signal })
}

async function openLogs (): Promise<number> {
  const links = await Promise.all((await readdir('/proc/self/fd')).map(async (fd) => {
    try {
      return await readlink(`/proc/self/fd/${fd}`)
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
      throw error
    }
  }))
  return links.filter((link) => link.endsWith('output.log')).length
}

t.test('the answer begins before there is a line, and a client that goes leaves nothing open', async (t) => {
  const app = await startApp(t, { listen: true })
  await app.make('web')
  await app.waitFor('web', 'Running')
  const aborted = new AbortController()
  const answers = await Promise.all(Array.from({ length: 5 }, async () => await follow(app, aborted.signal)))
  t.ok(answers.every(({ status }) => status === 200))
  // All have come to the end, and from there on the log is read once.
  await until(async () => await openLogs() === 1)
  aborted.abort()
  await until(async () => await openLogs() === 0)
  t.equal(await openLogs(), 0)
})

t.test('a server that stops breaks the streams off, without the line that has no end yet, and does not wait for them', async (t) => {
  const lines: Record<string, unknown>[] = []
  const app = await startApp(t, { listen: true, server: { drainTimeout: '10s' }, lines })
  await app.make('web')
  await app.waitFor('web', 'Running')
  await app.host.vm.print('a line\nhalf a l')
  const answer = await follow(app, new AbortController().signal)
  let text = ''
  const read = (async () => { for await (const chunk of answer.body ?? []) text += Buffer.from(chunk).toString() })()
  await until(() => text.includes('a line'))
  const began = performance.now()
  const [, end] = await Promise.all([app.app.stop(), read.then(() => 'an end', () => 'broken off')])
  t.ok(performance.now() - began < 15_000)
  t.equal(end, 'broken off', 'an end would say that the instance has stopped')
  t.match(text, /data: "a line"/)
  t.notMatch(text, /half/)
  t.notOk(lines.some(({ level, msg }) => level !== 'info' || String(msg).startsWith('connections were cut')), 'it is no failure')
})

t.test('the SDK learns that a log was broken off, and a log that is only read comes to its end', async (t) => {
  const app = await startApp(t, { listen: true, server: { drainTimeout: '30s' } })
  await app.make('web')
  await app.waitFor('web', 'Running')
  for (let count = 0; count < 12; count++) await app.host.vm.print(`${'x'.repeat(1023)}\n`.repeat(1024))
  const read = await fetch(`${app.app.address()}/instances/web/logs?tail=100000`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  const sdk = new Hypeman({ baseURL: app.app.address(), apiKey: ADMIN_KEY, maxRetries: 0 })
  const lines = await sdk.instances.logs('web', { follow: true, tail: 1 })
  const seen: string[] = []
  const followed = (async () => { for await (const line of lines) seen.push(line) })().then(() => 'an end', () => 'broken off')
  await until(() => seen.length === 1)
  const stopped = app.app.stop()
  t.equal((await read.text()).split('data: ').length - 1, 12 * 1024)
  t.equal(await followed, 'broken off')
  await stopped
})

t.test('a command that follows a log says that it was cut off, and does not end as if the instance had stopped', async (t) => {
  const app = await startApp(t, { listen: true })
  await app.make('web')
  await app.waitFor('web', 'Running')
  await app.host.vm.print('a line\n')
  let seen = ''
  const command = berth(['logs', '-f', 'web'], {
    env: { BERTH_URL: app.app.address(), BERTH_TOKEN: ADMIN_KEY },
    signalAfter (out) {
      seen = out
      return false
    }
  })
  await until(() => seen === 'a line\n')
  await app.app.stop()
  t.match(await command, { code: 6, out: 'a line\n', error: /^berth: .*: the connection was lost while it was followed\n/ })
})

t.test('a client that does not read holds the reader back', async (t) => {
  const app = await startApp(t, { listen: true })
  await app.make('web')
  await app.waitFor('web', 'Running')
  for (let count = 0; count < 40; count++) await app.host.vm.print(`${'x'.repeat(1023)}\n`.repeat(1024))
  const before = process.memoryUsage().arrayBuffers
  const answer = await fetch(`${app.app.address()}/instances/web/logs?tail=100000&follow=true`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  await new Promise((resolve) => { setTimeout(resolve, 500) })
  t.ok(process.memoryUsage().arrayBuffers - before < 20 * 2 ** 20)
  await app.host.vm.exit()
  const text = await answer.text()
  t.equal(text.split('data: ').length - 1, 40 * 1024)
})
