// What `berth build` sends.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { extract } from 'tar-stream'
import { deferred } from '../../core/jobs/deferred.ts'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'
import { berth } from './berth.ts'

/** A server of builds that answers as the test has it. */
async function buildServer (t: Test, answer: (request: IncomingMessage, reply: ServerResponse) => void): Promise<Record<string, string>> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  t.teardown(() => { server.close(); server.closeAllConnections() })
  await once(server, 'listening')
  return { BERTH_URL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, BERTH_TOKEN: 'key' }
}

/** The paths in the archive of a form, which is its last field. */
async function pathsIn (form: Buffer): Promise<string[]> {
  const boundary = form.subarray(0, form.indexOf('\r\n'))
  const archive = form.subarray(form.indexOf('\r\n\r\n', form.indexOf('name="source"')) + 4, form.lastIndexOf(`\r\n${boundary.toString()}`))
  const paths: string[] = []
  const entries = Readable.from([gunzipSync(archive)]).pipe(extract())
  for await (const entry of entries) {
    paths.push(entry.header.name)
    entry.resume()
  }
  return paths.sort()
}

t.test('the Dockerfile in use and its ignore files are sent whatever .dockerignore says, and a Dockerfile\'s own ignore file takes the place of .dockerignore', async (t) => {
  let sent: Promise<string[]> = Promise.resolve([])
  const env = await buildServer(t, (request, reply) => {
    sent = buffer(request).then(pathsIn)
    sent.catch(() => undefined).finally(() => { reply.writeHead(202, { 'content-type': 'application/json' }).end('{"id":"b"}') })
  })
  const folder = testFolder(t, {
    plain: { '.dockerignore': '*\n!kept\n', Dockerfile: '', kept: '', secret: '' },
    own: { '.dockerignore': '**\n', inner: { 'web.Dockerfile': '', 'web.Dockerfile.dockerignore': 'secret\ninner\n', 'other.Dockerfile': '' }, kept: '', secret: '', Dockerfile: '' },
    none: { 'Dockerfile.dockerignore': '', '.dockerignore': '*', Dockerfile: '', kept: '' }
  })
  for (const [context, options, expected] of [
    ['plain', [], ['.dockerignore', 'Dockerfile', 'kept']],
    ['own', ['-f', join(folder, 'own/inner/web.Dockerfile')], ['.dockerignore', 'Dockerfile', 'inner/web.Dockerfile', 'inner/web.Dockerfile.dockerignore', 'kept']],
    ['own', ['-f', join(folder, 'own/inner/other.Dockerfile')], ['.dockerignore', 'inner/other.Dockerfile']],
    ['own', ['-f', join(folder, 'plain/Dockerfile')], ['.dockerignore']],
    ['none', [], ['.dockerignore', 'Dockerfile', 'Dockerfile.dockerignore', 'kept']]
  ] as const) {
    t.match(await berth(['build', '-d', ...options, join(folder, context)], { env }), { code: 0, error: '' })
    t.strictSame(await sent, expected, `${context} ${options.join(' ')}`)
  }
})

t.test('Ctrl-C cancels a build that was sent and not yet answered, and sends no more of one that is on its way', { timeout: 240_000 }, async (t) => {
  const folder = testFolder(t, { small: { Dockerfile: 'FROM scratch' }, large: { Dockerfile: 'FROM scratch', ballast: 'x' }, 'services.yaml': 'name: p\nservices:\n  web:\n    build: small\n' })
  await writeFile(join(folder, 'large/ballast'), randomBytes(32 * 2 ** 20))
  for (const args of [['build', join(folder, 'small')], ['build', '-d', join(folder, 'small')], ['compose', 'up', '-f', join(folder, 'services.yaml')]]) {
    const { promise: arrived, resolve } = deferred<void>()
    const undone: string[] = []
    const env = await buildServer(t, (request, reply) => {
      const { method = '', url = '' } = request
      const json = (status: number, body: unknown): void => { reply.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body)) }
      if (method === 'DELETE') undone.push(url)
      if (method !== 'POST' || url !== '/builds') return url.startsWith('/instances') || url.startsWith('/volumes') ? json(200, []) : json(404, { code: 'not_found', message: 'there is none' })
      request.resume().once('end', () => {
        resolve()
        setTimeout(() => { json(202, { id: 'b1', status: 'queued' }) }, 500)
      })
    })
    t.match(await berth(args, { env, signalWhen: arrived }), { code: 130, out: '' }, args.join(' '))
    t.strictSame(undone, ['/builds/b1'], args.join(' '))
  }
  const { promise: begun, resolve: begin } = deferred<IncomingMessage>()
  const env = await buildServer(t, (request) => {
    request.once('data', () => { begin(request.pause()) }).on('error', () => undefined)
  })
  t.match(await berth(['build', join(folder, 'large')], { env, signalWhen: begun }), { code: 130 })
  // Nobody reads it while the command runs. What was on its way then comes first, and the end of the connection after that.
  const request = await begun
  request.resume()
  await eventually('the end of the connection', () => request.closed)
  t.notOk(request.complete, 'the rest was not sent')
})
