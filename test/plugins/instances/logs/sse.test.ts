// The stream of GET logs over a real connection: what happens when either side goes.
// Own process: it measures the memory of buffers, and counts open files.
import { readdir, readlink } from 'node:fs/promises'
import t from 'tap'
import { ADMIN_KEY } from '../../../core/bare-app.ts'
import { startApp, type TestApp } from '../app.ts'
import { until } from '../../../helpers/eventually.ts'

async function followed ({ app }: TestApp, signal: AbortSignal): Promise<Response> {
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
  const answers = await Promise.all(Array.from({ length: 5 }, async () => await followed(app, aborted.signal)))
  t.ok(answers.every(({ status }) => status === 200))
  // All have come to the end, and from there on the log is read once.
  await until(async () => await openLogs() === 1)
  aborted.abort()
  await until(async () => await openLogs() === 0)
  t.equal(await openLogs(), 0)
})

t.test('a server that stops ends the streams and does not wait for them', async (t) => {
  const app = await startApp(t, { listen: true })
  await app.make('web')
  await app.waitFor('web', 'Running')
  await app.host.vm.print('a line\n')
  const answer = await followed(app, new AbortController().signal)
  const text = answer.text()
  await until(async () => await openLogs() === 1)
  const began = performance.now()
  await app.app.stop()
  t.ok(performance.now() - began < 15_000)
  t.match(await text, /data: "a line"/)
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
