// Where a login finds its key, and where it is kept.
import { once } from 'node:events'
import { chmod, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { testFolder } from '../../helpers/folder.ts'
import { berth } from '../berth.ts'

t.test('a login takes the key of --token-file, and asks for none', async (t) => {
  const keys: unknown[] = []
  const server = createServer(({ headers }, reply) => {
    keys.push(headers.authorization)
    reply.end('[]')
  }).listen(0, '127.0.0.1')
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  const folder = testFolder(t, { key: 'of the file\n' })
  const file = join(folder, 'contexts.json')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  t.match(await berth(['login', url, '--name', 'here', '--token-file', join(folder, 'key')], { env: { BERTH_CONTEXTS: file }, input: 'of the input\n' }), { code: 0 })
  t.strictSame(keys, ['Bearer of the file'])
  t.match(JSON.parse(await readFile(file, 'utf8')), { current: 'here', contexts: { here: { url, token: 'of the file' } } })
  t.match(await berth(['login', url, '--token-file', join(folder, 'none')], { env: { BERTH_CONTEXTS: file } }), { code: 1, error: /none cannot be read: ENOENT/ })
})

t.test('a home that is no folder has no contexts, and what cannot be read or written is named', async (t) => {
  const home = { BERTH_CONTEXTS: '', XDG_CONFIG_HOME: '', HOME: '/dev/null' }
  t.match(await berth(['context', 'ls', '-q'], { env: home }), { code: 0, out: '', error: '' })
  const server = createServer((_request, reply) => { reply.end('[]') }).listen(0, '127.0.0.1')
  t.teardown(() => { server.close() })
  await once(server, 'listening')
  t.match(await berth(['login', `127.0.0.1:${(server.address() as AddressInfo).port}`, '--token', 'x'], { env: home }), { code: 1, error: /^berth: \/dev\/null\/.config\/berth\/contexts.json cannot be written: ENOTDIR.*\n$/ })
  const folder = testFolder(t, { 'contexts.json': {} })
  await chmod(join(folder, 'contexts.json'), 0o700)
  t.match(await berth(['context', 'ls'], { env: { BERTH_CONTEXTS: join(folder, 'contexts.json') } }), { code: 1, error: /^berth: .*contexts.json cannot be read: EISDIR.*\n$/ })
})
