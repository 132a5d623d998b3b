// The server dies between any two steps of POST and DELETE of an ingress: the next one has it whole, and serves it with TLS, or has nothing of it, and its name and hosts are free.
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { pathsOf } from '../../../plugins/ingress/process/paths.ts'
import { copyOfData } from '../instances/crash.ts'
import { chosen, crashPoints, type CrashPoint } from '../instances/crash-points.ts'
import { PROGRAM, startIngress, type IngressApp } from './app.ts'
import { skipReason } from './stage.ts'

const to = (hostname: string) => ({ match: { hostname }, target: { instance: 'web', port: PROGRAM }, tls: true, redirect_http: true })
const body = { name: 'site', rules: [to('one.test'), to('*.two.test')] }

/** As clients with the authority's certificate are answered. */
async function askTls ({ call, place }: IngressApp, host: string): Promise<string> {
  const ca = (await call('GET', '/ingress-authority')).text
  const asked = request({ host: place.address, port: place.https, path: '/tls', servername: host, headers: { host }, ca, agent: false })
  asked.end()
  const [response] = await once(asked, 'response')
  return await text(response)
}

/** Starts a server on what was there at each of these. */
async function goOn (t: Test, before: IngressApp, points: readonly CrashPoint[]): Promise<void> {
  for (const [index, { step, dataDir }] of chosen(points).entries()) {
    // Without an ingress it leaves no nginx either; the instance goes on for the next one.
    const after = await startIngress(t, { host: before.host, dataDir, server: { stopInstancesOnExit: false }, place: { ...before.place, address: `127.0.1.${index + 1}` } })
    const { status, body: view } = await after.call('GET', '/ingresses/site')
    const certificates = async (): Promise<string[]> => (await readdir(pathsOf(dataDir).certificates)).sort()
    if (status === 404) {
      t.same(await certificates(), [], `${step}: no certificate is left`)
      t.match(await after.ask('one'), { status: 404 })
      t.match(await after.call('POST', '/ingresses', body), { status: 201 }, `${step}: name and hosts are free`)
    } else {
      t.match({ status, view }, { status: 200, view: { served: true, certificates: [{}, {}] } }, step)
      t.match(await after.call('POST', '/ingresses', body), { status: 409 })
    }
    for (const host of ['one.test', 'any.two.test']) t.equal(await askTls(after, host), 'web /tls', `${step}: ${host}`)
    t.match(await after.ask('one'), { status: 308 })
    t.equal((await certificates()).length, 2)
    t.match(await after.call('DELETE', '/ingresses/site'), { status: 204 })
    t.same(await certificates(), [])
    await after.app.stop()
    t.same(await readdir(join(pathsOf(dataDir).folder, 'kept')), [], 'no answer of it is kept')
  }
}

t.test('a server that dies within POST of an ingress', { skip: skipReason(), timeout: 300_000 }, async (t) => {
  const app = await startIngress(t)
  await app.makeGuest('web')
  const untouched = { step: '0: nothing yet', dataDir: await copyOfData(t, app.dataDir) }
  const points = await crashPoints(t, app.dataDir, async () => { t.match(await app.call('POST', '/ingresses', body), { status: 201 }) })
  t.ok(points.length > 5, points.map(({ step }) => step).join(', '))
  const done = { step: 'all', dataDir: await copyOfData(t, app.dataDir) }
  await goOn(t, app, [untouched, ...points, done])
})

t.test('a server that dies within DELETE of an ingress that is called', { skip: skipReason(), timeout: 300_000 }, async (t) => {
  const app = await startIngress(t)
  await app.makeGuest('web')
  t.match(await app.call('POST', '/ingresses', body), { status: 201 })
  t.equal(await askTls(app, 'one.test'), 'web /tls')
  const untouched = { step: '0: nothing yet', dataDir: await copyOfData(t, app.dataDir) }
  const points = await crashPoints(t, app.dataDir, async () => { t.match(await app.call('DELETE', '/ingresses/site'), { status: 204 }) })
  t.ok(points.length > 1, points.map(({ step }) => step).join(', '))
  const done = { step: 'all', dataDir: await copyOfData(t, app.dataDir) }
  await goOn(t, app, [untouched, ...points, done])
})
