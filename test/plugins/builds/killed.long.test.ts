// The server is killed while builds are in every state; the next one ends what was under way, and goes on with what waits.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { access, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { ADMIN_KEY, temporaryFolder } from '../../core/bare-app.ts'
import { PATIENCE_MS } from '../../helpers/eventually.ts'
import { crashPoints } from '../instances/crash-points.ts'
import { copyOfData } from '../instances/crash.ts'
import { encode, SOURCE, startBuilds, until } from './app.ts'
import { digestOf, ScriptedRunner } from './scripted-runner.ts'

const PROGRAM = fileURLToPath(new URL('server-program.js', import.meta.url))

interface Server { readonly child: ChildProcess, readonly url: string }

async function start (t: Test, dataDir: string): Promise<Server> {
  const child = spawn(process.execPath, [PROGRAM, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { child.kill('SIGKILL') })
  const [url]: unknown[] = await once(createInterface({ input: child.stdout }), 'line', { signal: AbortSignal.timeout(PATIENCE_MS) })
  return { child, url: String(url) }
}

async function call (server: Server, method: string, path: string, body?: Uint8Array, type?: string): Promise<Record<string, unknown>> {
  const answer = await fetch(`${server.url}${path}`, { method, headers: { authorization: `Bearer ${ADMIN_KEY}`, ...type === undefined ? {} : { 'content-type': type } }, ...body === undefined ? {} : { body } })
  const text = await answer.text()
  return text === '' ? {} : JSON.parse(text)
}

async function build (server: Server, fields: Record<string, string>): Promise<string> {
  const { body, type } = await encode({ source: SOURCE, ...fields })
  const { id } = await call(server, 'POST', '/builds', new Uint8Array(body), type)
  return String(id)
}

t.test('kill -9 of the server in each state of a build', { timeout: 60_000 }, async (t) => {
  const dataDir = join(await temporaryFolder(t), 'data')
  const first = await start(t, dataDir)
  await call(first, 'POST', '/builders', Buffer.from('{"id":"b1"}'), 'application/json')
  const done = await build(first, { target: 'done' })
  await until(async () => (await call(first, 'GET', `/builds/${done}`))['status'] === 'ready')
  const building = await build(first, { target: 'building', builder_id: 'b1' })
  const pushing = await build(first, { target: 'pushing' })
  const pushed = await build(first, { target: 'pushed' })
  const renamed = await build(first, { target: 'pushed', image_name: 'somebody/else' })
  const forBuilder = await build(first, { target: 'done', builder_id: 'b1' })
  const queued = await build(first, { target: 'done' })
  for (const id of [pushing, pushed, renamed]) await until(async () => (await call(first, 'GET', `/builds/${id}`))['status'] === 'pushing')
  for (const id of [building, pushing, pushed, renamed]) await until(async () => (await readFile(join(dataDir, 'builds', id, 'log'), 'utf8')).includes('last word'))
  t.match(await call(first, 'GET', `/builds/${queued}`), { status: 'queued', queue_position: 2 })
  first.child.kill('SIGKILL')
  await once(first.child, 'exit')

  const second = await start(t, dataDir)
  const end = async (id: string): Promise<Record<string, unknown>> => {
    await until(async () => (await call(second, 'GET', `/builds/${id}`))['completed_at'] !== null)
    return await call(second, 'GET', `/builds/${id}`)
  }
  const interrupted = (state: string): RegExp => new RegExp(`^the server was stopped while the build was ${state}; its last lines:\nthis one is .*\nand a last word$`)
  t.match(await end(building), { status: 'failed', error: interrupted('building'), builder_instance_id: `vm-${building}`, duration_ms: Number, image_ref: null })
  t.match(await end(pushing), { status: 'failed', error: interrupted('pushing'), image_ref: null })
  t.match(await end(pushed), { status: 'ready', error: null, image_ref: `localhost/builds/${pushed}:latest`, image_digest: digestOf(pushed), provenance: { builder: 'buildah' } })
  t.match(await end(renamed), { status: 'failed', error: interrupted('pushing') }, 'the name is another image\'s by now')
  t.match(await end(queued), { status: 'ready' })
  t.match(await end(forBuilder), { status: 'ready' })
  t.match(await call(second, 'GET', `/builds/${done}`), { status: 'ready' })
  await until(async () => (await call(second, 'GET', '/builders/b1'))['active_build_id'] === null)
  t.match(await call(second, 'GET', '/builders/b1'), { status: 'ready', active_build_id: null })
  t.same((await readFile(join(dataDir, 'cleaned'), 'utf8')).trim().split('\n').sort(), [building, pushing, pushed, renamed].sort())
  for (const id of [building, pushing, pushed, queued]) {
    await until(async () => (await readdir(join(dataDir, 'builds', id))).length === 1)
    t.same(await readdir(join(dataDir, 'builds', id)), ['log'], 'nothing but the log is left')
  }
  const answer = await fetch(`${second.url}/builds/${building}/events?follow=true`, { headers: { authorization: `Bearer ${ADMIN_KEY}` } })
  const events = [...(await answer.text()).matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data)).map(({ content, status }) => content ?? status)
  t.same(events, ['queued', 'building', 'this one is building', 'and a last word', 'failed'])
})

t.test('a server that is killed while it takes a build leaves all of it, or nothing', { timeout: 120_000 }, async (t) => {
  const runner = new ScriptedRunner()
  const before = await startBuilds(t, { runner, config: { concurrency: 1 } })
  await before.build()
  const points = await crashPoints(t, before.dataDir, async () => { t.equal((await before.post({ source: SOURCE })).status, 202) })
  t.ok(points.length >= 4, `${points.length} points`)
  const counts = new Set<number>()
  for (const { step, dataDir } of points) {
    const next = new ScriptedRunner()
    next.onRun = (run) => { run.finish() }
    const after = await startBuilds(t, { dataDir, runner: next })
    const builds: { id: string }[] = JSON.parse((await after.call('GET', '/builds')).text)
    counts.add(builds.length)
    // The newest is told first.
    const [interrupted, ...later] = builds.toReversed()
    for (const { id } of later) {
      await after.become(id, 'ready')
      await access(join(dataDir, 'builds', id, 'log'))
    }
    await after.become(interrupted?.id ?? '', 'failed')
    const expected = ['uploading', ...builds.map(({ id }) => id)].sort()
    await until(async () => (await after.files()).length === expected.length)
    t.same(await after.files(), expected, step)
    await after.app.stop()
  }
  t.same([...counts].sort(), [1, 2], 'both come about')
})

t.test('what cannot be cleaned up is told, and the others go on', async (t) => {
  const first = await startBuilds(t)
  const id = await first.build()
  await first.runner.begun(id)
  const dataDir = await copyOfData(t, first.dataDir)
  const runner = new ScriptedRunner()
  runner.onClean = () => { throw new Error('the VM cannot be removed') }
  const after = await startBuilds(t, { dataDir, runner })
  t.match(await after.become(id, 'failed'), { error: /^the server was stopped while the build was building, and could not remove what was left of it$/ })
  t.ok(after.lines.some(({ build, msg }) => build === id && String(msg).includes('could not be removed')))
})
