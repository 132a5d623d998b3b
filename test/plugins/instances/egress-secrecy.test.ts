// The values of credentials are nowhere but in the proxy: looked for as raw bytes in all that a server writes and answers.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { hasCode } from '../../../core/errors/system-code.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { until } from './crash.ts'
import { asked, NEXT, REAL, rows, running } from './egress-app.ts'
import { EgressUnavailable } from './scripted-egress.ts'

const WORST = 'refused-value-1a2b3c'

t.test('values of credentials are in no answer, log, row or file', async (t) => {
  const lines: Record<string, unknown>[] = []
  const app = await running(t, {}, { lines, onLine: () => {} })
  const { call, dataDir } = app
  const answers: string[] = []
  const ask = async (...[method, url, body, headers]: Parameters<typeof call>): Promise<void> => { answers.push((await call(method, url, body, headers)).text) }
  const create = (name: string, fields: Record<string, unknown>): Record<string, unknown> => ({ name, image: 'test', overlay_size: '32MB', ...asked, ...fields })
  await ask('POST', '/instances', create('kept', {}), { 'idempotency-key': 'once' })
  await ask('POST', '/instances', create('kept', {}), { 'idempotency-key': 'once' })
  // Each of these is refused at another place.
  await ask('POST', '/instances', create('a', { env: { SECRET: REAL, BAD: `${REAL}\0` } }))
  await ask('POST', '/instances', create('a', { env: { 'A-B': REAL } }))
  await ask('POST', '/instances', create('a', { env: { SECRET: [REAL] } }))
  await ask('POST', '/instances', create('a', { env: { OTHER: REAL } }))
  await ask('POST', '/instances', create('a', { network: { enabled: false, egress: { enabled: true } } }))
  await ask('POST', '/instances', create('a', { unknown: REAL }))
  await ask('POST', '/instances', create('kept', {}))
  await ask('PATCH', '/instances/web', { env: { SECRET: NEXT } })
  await ask('PATCH', '/instances/web', { env: { OTHER: WORST } })
  await ask('PATCH', '/instances/web', { env: { SECRET: [WORST] } })
  await ask('PATCH', '/instances/web', { env: { SECRET: WORST }, unknown: WORST })
  const broken = await app.app.http.inject({ method: 'PATCH', url: '/instances/web', headers: { 'content-type': 'application/json', authorization: `Bearer ${ADMIN_KEY}` }, payload: `{"env":{"SECRET":"${WORST}"` })
  t.equal(broken.statusCode, 400)
  answers.push(broken.body)
  app.host.failures.set('enforce', EgressUnavailable())
  await ask('POST', '/instances', create('b', {}))
  app.host.failures.set('launch', new Error('no'))
  await ask('POST', '/instances', create('c', {}))
  app.host.failures.clear()
  app.host.failures.set('replace', EgressUnavailable())
  await ask('PATCH', '/instances/web', { env: { SECRET: WORST } })
  app.host.failures.clear()
  await ask('POST', '/instances/web/fork', { name: 'twin', from_running: true })
  await ask('POST', '/instances/web/standby')
  await ask('GET', '/instances')
  await ask('GET', '/instances/web/egress')
  t.ok((await rows(app)).length >= 3)
  // What is looked at while it is written may have another name before it is read.
  const manifest = join(dataDir, 'instances', String((await call('GET', '/instances/web')).body['id']), 'standby', 'image.json')
  await until(async () => JSON.parse(await readFile(manifest, 'utf8')).bootId === null)
  const files = await filesIn(dataDir)
  t.ok(files.some(({ name }) => name.endsWith('berth.db-wal')), 'the database has not written its log away')
  for (const value of [REAL, NEXT, WORST]) {
    for (const form of [value, Buffer.from(value).toString('base64').replace(/=+$/, '')]) {
      for (const { name, content } of files) t.notOk(content.includes(form), name)
      t.notOk(JSON.stringify(lines).includes(form), 'the log')
      for (const text of answers) t.notOk(text.includes(form), text)
    }
  }
  t.ok(lines.some(({ level }) => level === 'debug'), 'the log was at its most talkative')
  await app.app.stop()
  for (const { name, content } of await filesIn(dataDir)) for (const value of [REAL, NEXT, WORST]) t.notOk(content.includes(value), name)
})

async function filesIn (folder: string): Promise<{ name: string, content: Buffer }[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const found = await Promise.all(entries.filter((entry) => entry.isFile()).map(async ({ name, parentPath }) => {
    const path = join(parentPath, name)
    // Whoever writes a file under another name first may have finished meanwhile.
    const content = await readFile(path).catch((error: unknown) => { if (!hasCode(error, 'ENOENT')) throw error })
    return content === undefined ? [] : [{ name: path, content }]
  }))
  return found.flat()
}
