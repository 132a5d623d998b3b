import t from 'tap'
import { Type } from 'typebox'
import { answerPage, listQuery, matchesTags, paginate, TagsQuery, wantedPage, type Page } from '../../../core/http/list.ts'
import { startTestHttp } from '../../helpers/http.ts'

const WEIGHTS = ['c', 'a', 'e', 'b', 'd']
const ITEMS = ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, weight: WEIGHTS.indexOf(id), tags: { kind: id < 'd' ? 'early' : 'late', ...id === 'b' ? { 1: 'x' } : {} } }))

t.test('a list is given whole, or page by page along its links', async (t) => {
  const { send } = await startTestHttp(t, (app) => {
    app.get<{ Querystring: Page<'created_at' | 'weight'> & { tags?: Record<string, string> } }>('/things', {
      config: { scope: 'instance:read' }, schema: { querystring: Type.Object({ ...listQuery(['created_at', 'weight'], 'created_at'), ...TagsQuery }, { additionalProperties: false }) }
    }, async (request, reply) => {
      const found = paginate(ITEMS.filter((item) => matchesTags(item.tags, request.query.tags)), wantedPage(request.query), ({ id }) => id, { created_at: ({ id }) => id, weight: ({ weight }) => weight })
      return answerPage(found, ({ id }) => id, request, reply)
    })
  })
  const ids = (response: Awaited<ReturnType<typeof send>>): string[] => response.json().map((item: { id: string }) => item.id)
  const whole = await send({ url: '/things' })
  t.same(ids(whole), ['a', 'b', 'c', 'd', 'e'])
  t.equal(whole.headers['link'], undefined)

  const pages: string[][] = []
  let url: string | undefined = '/things?tags[kind]=early&limit=2'
  while (url !== undefined) {
    const page = await send({ url })
    pages.push(ids(page))
    const link: string | undefined = page.headers['link']?.toString()
    url = link === undefined ? undefined : /^<(.+)>; rel="next"$/.exec(link)?.[1]
  }
  t.same(pages, [['a', 'b'], ['c']], 'the filter holds on every page')

  t.same(ids(await send({ url: '/things?tags[1]=x' })), ['b'], 'a key that is a number')
  t.same(ids(await send({ url: '/things?tags%5B1%5D=x&tags[kind]=early' })), ['b'])
  for (const key of ['0', '', '__proto__', '%5F_proto__', 'constructor']) t.same(ids(await send({ url: `/things?tags[${key}]=x` })), [], `nothing has the tag ${key}`)
  t.same(ids(await send({ url: '/things?after=c' })), ['d', 'e'])
  t.same(ids(await send({ url: '/things?after=e&limit=5' })), [])
  t.equal((await send({ url: '/things?limit=5' })).headers['link'], undefined, 'the last page has no link')
  t.same(ids(await send({ url: '/things?sort=-created_at&limit=2' })), ['e', 'd'], 'newest first')
  t.same(ids(await send({ url: '/things?sort=weight' })), WEIGHTS)
  t.same(ids(await send({ url: '/things?sort=-weight&after=e' })), ['a', 'c'], 'after goes on in that order')
  t.equal((await send({ url: '/things?sort=colour' })).statusCode, 400)
  t.match((await send({ url: '/things?limit=1001' })).json(), { code: 'invalid_request', message: /limit/ })
  t.match((await send({ url: '/things?after=x' })).json(), { code: 'invalid_request', message: 'query parameter after: no item of this list has the id x' })
})

t.test('tags match when all wanted ones are there', async (t) => {
  t.equal(matchesTags({ a: '1', b: '2' }, { a: '1' }), true)
  t.equal(matchesTags({ a: '1' }, { a: '1', b: '2' }), false)
  t.equal(matchesTags({ a: '1' }, { a: '2' }), false)
  t.equal(matchesTags({}, { toString: 'x' }), false)
  t.equal(matchesTags(null, { a: '1' }), false)
  t.equal(matchesTags(undefined, undefined), true)
  t.equal(matchesTags({ a: '' }, { a: '' }), true)
})

t.test('a list without a limit has the standard page, which the link goes on from', async (t) => {
  const many = Array.from({ length: 1001 }, (_, index) => ({ id: `n${index}` }))
  const { send } = await startTestHttp(t, (app) => {
    app.get<{ Querystring: Page<'created_at'> }>('/things', {
      config: { scope: 'instance:read' }, schema: { querystring: Type.Object(listQuery(['created_at'], 'created_at'), { additionalProperties: false }) }
    }, async (request, reply) => answerPage(paginate(many, wantedPage(request.query), ({ id }) => id, { created_at: ({ id }) => id }), ({ id }) => id, request, reply))
  })
  const page = await send({ url: '/things' })
  t.equal(page.json().length, 1000)
  t.equal(page.headers['link'], '</things?after=n999>; rel="next"')
  t.same((await send({ url: '/things?after=n999' })).json(), [{ id: 'n1000' }])
})
