// Credentials are lent: they stand nowhere but in memory and in a file that goes with the push.
import { once } from 'node:events'
import { readdir, readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { hasCode } from '../../../core/errors/system-code.ts'
import { startGatedRegistry } from '../../helpers/gated-registry.ts'
import type { ImagesApp } from '../../helpers/images-app.ts'
import { pushLayout } from '../../helpers/oci.ts'
import { startUpstreamRegistry } from '../../helpers/upstream-registry.ts'
import { ended, startPushesApp, textLayout, until } from './app.ts'
import { eventually } from '../../helpers/eventually.ts'

const PASSWORD = 'a-password-that-is-searched-for'
const TOKEN = 'a-token-that-is-searched-for'
const FORMS = [PASSWORD, TOKEN].flatMap((secret) => [secret, Buffer.from(secret).toString('hex')])
  .concat(Buffer.from(`somebody:${PASSWORD}`).toString('base64'))

/** Every file below a folder. */
async function filesIn (folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

async function filesWithSecret (folder: string): Promise<string[]> {
  const found: string[] = []
  for (const file of await filesIn(folder)) {
    // Files of the database come and go.
    const bytes = await readFile(file).catch((error: unknown) => { if (hasCode(error, 'ENOENT')) return Buffer.alloc(0); throw error })
    if (FORMS.some((form) => bytes.includes(form))) found.push(file)
  }
  return found
}

/** What every process shows of its arguments and environment. */
async function processesWithSecret (): Promise<string[]> {
  const found: string[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    for (const file of [`/proc/${pid}/cmdline`, `/proc/${pid}/environ`]) {
      // It may have ended meanwhile.
      const bytes = await readFile(file).catch(() => Buffer.alloc(0))
      if (FORMS.some((form) => bytes.includes(form))) found.push(`${file}: ${bytes.toString()}`)
    }
  }
  return found
}

function nothingSaid (t: Test, app: ImagesApp, answers: unknown): void {
  for (const form of FORMS) {
    t.notOk(JSON.stringify(app.lines).includes(form), 'not in the log')
    t.notOk(JSON.stringify(answers).includes(form), 'not in answers')
  }
}

t.test('a password and a token are nowhere to be found, while a push runs, when it has failed, and after a restart', async (t) => {
  const [origin, target] = await Promise.all([startUpstreamRegistry(t), startUpstreamRegistry(t, { login: true })])
  const gate = await startGatedRegistry(t, origin.host)
  const app = await startPushesApp(t)
  const name = `${gate.host}/app:1`
  await pushLayout(await textLayout(t, 'secrets'), `${origin.host}/app:1`)
  await app.sdk.images.create({ name })
  await app.settled(name)

  // It asks nobody who they are, so these will do.
  const open = await startUpstreamRegistry(t)
  gate.hold()
  const running = await Promise.all([{ username: 'somebody', password: PASSWORD }, { registry_token: TOKEN }].map(async (credentials, index) =>
    await app.sdk.pushes.create({ image: name, target: `${open.host}/app-${index}:1`, credentials })))
  await gate.held()
  for (const { id } of running) await until(app, id, ({ status }) => status === 'pushing')
  // A push is shown as such a little before its login file is written.
  const inFiles = await eventually('a login file is written', async () => {
    const found = await filesWithSecret(app.dataDir)
    return found.length > 0 && found
  })
  t.ok(inFiles.every((file) => /\/pushes\/tmp-[^/]+\/login-[^/]+\.json$/.test(file)), `only in a login file: ${inFiles.join(', ')}`)
  t.ok(inFiles.length >= 1, 'the search finds what is there')
  for (const file of inFiles) t.equal((await stat(file)).mode & 0o777, 0o600)
  t.equal((await stat(join(app.dataDir, 'pushes'))).mode & 0o777, 0o700)
  t.same(await processesWithSecret(), [], 'no process shows them')
  gate.release()
  const pushed = await Promise.all(running.map(async ({ id }) => await ended(app, id)))
  t.same(pushed.map(({ status }) => status), ['pushed', 'pushed'])

  const failed = []
  for (const credentials of [{ username: 'somebody', password: PASSWORD }, { registry_token: TOKEN }]) {
    const { id } = await app.sdk.pushes.create({ image: name, target: `${target.host}/app:1`, credentials })
    failed.push(await ended(app, id))
  }
  t.same(failed.map(({ status }) => status), ['failed', 'failed'])
  const wrong = await app.request('POST', '/pushes', { image: name, target: `${target.host}/app:1`, credentials: { username: 'somebody:', password: PASSWORD } })
  t.equal(wrong.status, 400)
  nothingSaid(t, app, [pushed, failed, wrong, await app.sdk.pushes.list()])
  await app.stop()
  t.same(await filesWithSecret(app.dataDir), [], 'neither the database nor any other file has them')
})

t.test('what a registry says to the credentials that it got is told without them', async (t) => {
  const echo = createServer((request, response) => {
    const { authorization = '' } = request.headers
    request.resume()
    if (authorization === '') return response.writeHead(401, { 'www-authenticate': 'Basic realm="echo"' }).end()
    if (request.url === '/v2/') return response.end('{}')
    const plain = Buffer.from(authorization.replace(/^Basic /, ''), 'base64').toString()
    response.writeHead(request.method === 'HEAD' ? 404 : 403, { 'content-type': 'application/json' })
      .end(JSON.stringify({ errors: [{ code: 'DENIED', message: `you said ${authorization}, which is ${plain}` }] }))
  })
  await once(echo.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => { echo.close(); echo.closeAllConnections() })
  const address = echo.address()
  const host = `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  const origin = await startUpstreamRegistry(t)
  const app = await startPushesApp(t)
  const name = `${origin.host}/app:1`
  await pushLayout(await textLayout(t, 'echo'), name)
  await app.sdk.images.create({ name })
  await app.settled(name)
  const failed = []
  for (const credentials of [{ username: 'somebody', password: PASSWORD }, { registry_token: TOKEN }]) {
    const { id } = await app.sdk.pushes.create({ image: name, target: `${host}/app:1`, credentials })
    failed.push(await ended(app, id))
  }
  t.match(failed, [{ status: 'failed', error: /you said Basic \*\*\*, which is somebody:\*\*\*/ }, { status: 'failed', error: /you said Bearer \*\*\*/ }])
  nothingSaid(t, app, failed)
})
