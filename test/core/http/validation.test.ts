import t from 'tap'
import { Type } from 'typebox'
import { listQuery, TagsQuery } from '../../../core/http/list.ts'
import { nullable, oneOf, ResourceName, Tags, Timestamp } from '../../../core/http/schemas.ts'
import { startTestHttp } from '../../helpers/http.ts'

const closed = { additionalProperties: false } as const
const Body = Type.Object({
  name: ResourceName,
  vcpus: Type.Optional(Type.Integer({ default: 2, minimum: 1, maximum: 16 })),
  size: Type.Optional(Type.String({ pattern: '^[0-9]+GB$', rule: 'must be a size such as 2GB' })),
  mode: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
  policy: Type.Optional(oneOf(['never', 'always'])),
  tags: Type.Optional(Tags),
  at: Type.Optional(Timestamp),
  note: Type.Optional(nullable(Type.String({ minLength: 2 }))),
  restart: Type.Optional(Type.Boolean()),
  volumes: Type.Optional(Type.Array(Type.Object({ mount_path: Type.String() }, closed), { maxItems: 2 }))
}, closed)

async function server (t: Parameters<typeof startTestHttp>[0]): ReturnType<typeof startTestHttp> {
  return startTestHttp(t, (app) => {
    app.post('/things', { config: { scope: null }, schema: { body: Body } }, async (request) => request.body)
    app.get('/things', {
      config: { scope: null },
      schema: { querystring: Type.Object({ ...listQuery(['created_at'], 'created_at'), ...TagsQuery, flag: Type.Optional(Type.Boolean()), ids: Type.Optional(Type.Array(Type.String())) }, closed) }
    }, async (request) => request.query)
    app.get('/numbers/:n', { config: { scope: null }, schema: { params: Type.Object({ n: Type.Integer() }, closed) } }, async (request) => request.params)
    app.get('/images/:name', { config: { scope: null } }, async (request) => request.params)
    app.get('/files/*', { config: { scope: null } }, async (request) => request.params)
  })
}

t.test('a body that breaks a rule is refused with the field and the rule', async (t) => {
  const { send } = await server(t)
  const table: ReadonlyArray<readonly [unknown, string]> = [
    [{}, 'name is required'],
    [{ name: 'Web' }, 'name must have 1 to 63 lower case letters, digits or dashes, and begin and end with a letter or digit'],
    [{ name: 'a', vcpus: '2' }, 'vcpus must be an integer'],
    [{ name: 'a', vcpus: 0 }, 'vcpus must be at least 1'],
    [{ name: 'a', vcpus: 17 }, 'vcpus must be at most 16'],
    [{ name: 'a', vcpus: 1.5 }, 'vcpus must be an integer'],
    [{ name: 'a', vcpu: 1 }, 'vcpu is not a known field; did you mean vcpus?'],
    [{ name: 'a', zzzzzzzz: 1 }, 'zzzzzzzz is not a known field'],
    [{ name: 'a', size: '2' }, 'size must be a size such as 2GB'],
    [{ name: 'a', mode: 'c' }, 'mode must be one of a, b'],
    [{ name: 'a', policy: 'c' }, 'policy must be one of never, always'],
    [{ name: 'a', note: 5 }, 'note must be a string or null'],
    [{ name: 'a', note: 'x' }, 'note must have at least 2 characters'],
    [{ name: 'a', restart: 'true' }, 'restart must be a boolean'],
    [{ name: 'a', at: 'yesterday' }, 'at must be a date and time such as 2026-01-31T12:00:00Z'],
    [{ name: 'a', tags: { ä: 'x' } }, 'tags has the key "ä", which is not allowed: keys have 1 to 128 characters and may have letters, digits, spaces and _ . : / = + @ - only'],
    [{ name: 'a', tags: { '': 'x' } }, 'tags has the key "", which is not allowed: keys have 1 to 128 characters and may have letters, digits, spaces and _ . : / = + @ - only'],
    [{ name: 'a', tags: { 'a.b': 3 } }, 'tags["a.b"] must be a string of at most 256 characters and may have letters, digits, spaces and _ . : / = + @ - only'],
    [{ name: 'a', tags: Object.fromEntries(Array.from({ length: 51 }, (_, index) => [`k${index}`, ''])) }, 'tags must have at most 50 entries'],
    [{ name: 'a', volumes: [{ mount_path: 'x' }, {}] }, 'volumes[1].mount_path is required'],
    [{ name: 'a', volumes: [{ mount_path: 'x', mout_path: 'y' }] }, 'volumes[0].mout_path is not a known field; did you mean mount_path?'],
    [{ name: 'a', volumes: [{ mount_path: '' }, { mount_path: '' }, { mount_path: '' }] }, 'volumes must have at most 2 items'],
    [[], 'the request body must be a JSON object'],
    ['text', 'the request body must be a JSON object']
  ]
  for (const [body, message] of table) {
    const response = await send({ method: 'POST', url: '/things', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    t.equal(response.statusCode, 400, message)
    t.match(response.json(), { code: 'invalid_request', message, details: [{ message }] })
  }
})

t.test('all faults are told at once, in details', async (t) => {
  const { send } = await server(t)
  const response = await send({ method: 'POST', url: '/things', body: { name: 'A', vcpus: 'x', cpus: 1, mode: 1, restart: 1 } })
  t.equal(response.json().details.length, 5)
  t.match(response.json().message, /; and 2 more$/)
  t.ok(response.json().details.some((detail: { code: string }) => detail.code === 'unknown_field'))
})

t.test('what is right passes, with defaults, and is never changed otherwise', async (t) => {
  const { send } = await server(t)
  const body = { name: 'web-1', mode: 'b', note: null, tags: { 'team/a b': 'x=1' }, at: '2026-01-31T12:00:00.000Z' }
  const response = await send({ method: 'POST', url: '/things', body })
  t.same(response.json(), { ...body, vcpus: 2 })
})

t.test('a body that cannot be read is refused as such', async (t) => {
  const { send } = await server(t)
  const json = { 'content-type': 'application/json' }
  const table = [
    [{ headers: json, body: '{"name":' }, 400, 'invalid_request', 'the request body is not valid JSON'],
    [{ headers: json, body: '{"__proto__":{"a":1},"name":"a"}' }, 400, 'invalid_request', 'the request body is not valid JSON'],
    [{ headers: json, body: '' }, 400, 'invalid_request', 'the request body is required: send a JSON object with content-type application/json'],
    [{}, 400, 'invalid_request', 'the request body is required: send a JSON object with content-type application/json'],
    [{ headers: { 'content-type': 'text/xml' }, body: '<a/>' }, 415, 'unsupported_media_type', 'the request body must be JSON, with content-type application/json'],
    [{ headers: json, body: JSON.stringify({ name: 'x'.repeat(70_000) }) }, 413, 'payload_too_large', 'the request body is larger than this server accepts']
  ] as const
  for (const [request, status, code, message] of table) {
    const response = await send({ method: 'POST', url: '/things', ...request })
    t.equal(response.statusCode, status, message)
    t.match(response.json(), { code, message })
  }
})

t.test('query and path values get their types, and only there', async (t) => {
  const { send } = await server(t)
  t.same((await send({ url: '/things?limit=5&flag=false&ids=a&tags[team.x]=b&tags[env]=' })).json(), { limit: 5, sort: 'created_at', flag: false, ids: ['a'], tags: { 'team.x': 'b', env: '' } })
  t.same((await send({ url: '/things?ids=a&ids=b' })).json(), { limit: 1000, sort: 'created_at', ids: ['a', 'b'] }, 'a list is its parameter, repeated')
  t.same((await send({ url: '/things?ids=a&ids=b' })).json(), { limit: 1000, sort: 'created_at', ids: ['a', 'b'] })
  t.same((await send({ url: '/numbers/12' })).json(), { n: 12 })
  const table = [
    ['/things?limit=x', 'query parameter limit must be an integer'],
    ['/things?limit=0', 'query parameter limit must be at least 1'],
    ['/things?limit=1001', 'query parameter limit must be at most 1000'],
    ['/things?limit=', 'query parameter limit must be an integer'],
    ['/things?limit=1&limit=2', 'query parameter limit must be an integer'],
    ['/things?flag=yes', 'query parameter flag must be a boolean'],
    ['/things?limt=1', 'query parameter limt is not a known field; did you mean limit?'],
    ['/things?tags=x', 'query parameter tags must be an object'],
    ['/things?tags[a][b]=c', 'query parameter tags.a must be a string'],
    [`/things?${'&'.repeat(200)}limt=1`, 'query parameter limt is not a known field; did you mean limit?'],
    [`/things?${'ids=a&'.repeat(200)}limit=1`, 'the query must have at most 200 parameters'],
    ['/things?__proto__[a]=b&constructor=x', 'query parameter constructor is not a known field'],
    ['/numbers/x', 'path parameter n must be an integer'],
    ['/numbers/%ZZ', 'the path is not validly percent-encoded']
  ] as const
  for (const [url, message] of table) {
    const response = await send({ url })
    t.equal(response.statusCode, 400, url)
    t.match(response.json(), { code: 'invalid_request', message })
  }
})

t.test('a path parameter may hold an encoded image name of any sane length', async (t) => {
  const { send } = await server(t)
  const name = `docker.io/library/${'a'.repeat(200)}:latest@sha256:${'0'.repeat(64)}`
  t.same((await send({ url: `/images/${encodeURIComponent(name)}` })).json(), { name })
  t.same((await send({ url: `/files/${encodeURIComponent(name)}` })).json(), { '*': name })
  t.same((await send({ url: `/files/${name}` })).json(), { '*': name })
  t.equal((await send({ url: `/images/${'a'.repeat(3000)}` })).statusCode, 414)
})

t.test('what was sent is not in the log, also not the most talkative one', async (t) => {
  const { logged, send } = await startTestHttp(t, (app) => {
    app.post('/things', { config: { scope: null }, schema: { body: Body } }, async (request) => request.body)
  }, { logLevel: 'debug' })
  for (const payload of [{ name: 'a', size: 'hunter2' }, { name: 'a', hunter: 'hunter2' }, { name: 'a', note: ['hunter2'] }]) {
    t.equal((await send({ method: 'POST', url: '/things', payload })).statusCode, 400)
  }
  const refusals = logged.filter(({ msg }) => msg === 'request refused')
  t.equal(refusals.length, 3)
  t.notMatch(JSON.stringify(logged), 'hunter2')
})
