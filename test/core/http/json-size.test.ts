// What a JSON body may hold beside its bytes, and that finding out takes no time worth mentioning.
import t from 'tap'
import { checkJsonSize } from '../../../core/http/json-size.ts'
import { limitMs, mainThreadMs } from '../../helpers/processor-time.ts'
import { buildApp } from '../../../core/app.ts'
import { ADMIN_KEY, noBuiltIns, temporaryFolder } from '../bare-app.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'
import { Type } from 'typebox'

const SIZE = 2 ** 20
const many = { code: 'invalid_request', message: 'the request body has more than 20000 fields and items' }
const deep = { code: 'invalid_request', message: 'the request body is nested more than 32 levels deep' }

t.test('fields and items are counted at all depths, and depth is bounded', async (t) => {
  checkJsonSize(undefined)
  checkJsonSize(null)
  checkJsonSize('x'.repeat(SIZE))
  checkJsonSize({ cmd: Array.from({ length: 19_999 }, () => 'a') })
  t.throws(() => checkJsonSize({ cmd: Array.from({ length: 20_000 }, () => 'a') }), many)
  t.throws(() => checkJsonSize(Array.from({ length: 200 }, () => Array.from({ length: 200 }, () => 1))), many)
  checkJsonSize(JSON.parse('['.repeat(32) + ']'.repeat(32)))
  t.throws(() => checkJsonSize(JSON.parse('['.repeat(33) + ']'.repeat(33))), deep)
  t.throws(() => checkJsonSize(JSON.parse('['.repeat(SIZE / 2) + ']'.repeat(SIZE / 2))), deep)
})

t.test('a body of the largest size, whatever is in it, is answered with 400 while nobody waits', async (t) => {
  const Body = Type.Object({ tags: Type.Record(Type.String({ maxLength: 8 }), Type.String({ maxLength: 8 })), list: Type.Array(Type.Union([Type.Literal('a'), Type.Object({})]), { maxItems: 4 }) }, { additionalProperties: false })
  const plugin = definePlugin({
    manifest: { id: 'taker', provides: [], requires: [], config: Type.Object({}, { additionalProperties: false }) },
    create: () => ({ async routes (http) { http.post('/take', { config: { scope: null }, schema: { body: Body } }, async () => ({})) } })
  })
  const app = await buildApp({ server: { dataDir: await temporaryFolder(t), listen: '127.0.0.1:0', apiKey: ADMIN_KEY }, log: { level: 'silent' } }, { environment: {}, builtIns: noBuiltIns, plugins: [plugin] })
  t.teardown(() => app.stop())
  await app.start({ listen: false })
  const limit = limitMs()
  for (const [name, payload] of Object.entries({
    numbers: `{"list":[${'1,'.repeat(SIZE / 2 - 100)}1]}`,
    unions: `{"list":[${'1,'.repeat(9000)}1]}`,
    tags: `{"tags":{${Array.from({ length: 60_000 }, (_, at) => `"k${at}":1`).join(',')}}}`,
    fewerTags: `{"tags":{${Array.from({ length: 9000 }, (_, at) => `"k${at}":"${'v'.repeat(80)}"`).join(',')}}}`,
    unknown: `{${Array.from({ length: 9000 }, (_, at) => `"${'k'.repeat(80)}${at}":1`).join(',')}}`,
    longName: `{"${'k'.repeat(SIZE - 100)}":1}`,
    depth: '['.repeat(SIZE / 2 - 10) + ']'.repeat(SIZE / 2 - 10)
  })) {
    let status = 0
    const took = await msOfAsync(async () => { status = (await app.http.inject({ method: 'POST', url: '/take', headers: { 'content-type': 'application/json' }, payload })).statusCode })
    t.equal(status, 400, name)
    t.ok(took < limit, `${name}: ${took} ms of ${limit}`)
  }
})

async function msOfAsync (work: () => Promise<void>): Promise<number> {
  const start = mainThreadMs()
  await work()
  return mainThreadMs() - start
}
