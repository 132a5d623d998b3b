import t from 'tap'
import { Type } from 'typebox'
import { ListQuery, matchesTags, paginate, TagsQuery, type Page } from '../../../core/http/list.ts'
import { startTestHttp } from '../../helpers/http.ts'

const ITEMS = ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id, tags: { kind: id < 'd' ? 'early' : 'late' } }))

t.test('a list is given whole, or page by page along its links', async (t) => {
  const { send } = await startTestHttp(t, (app) => {
    app.get<{ Querystring: Page & { tags?: Record<string, string> } }>('/things', {
      config: { scope: 'instance:read' }, schema: { querystring: Type.Object({ ...ListQuery, ...TagsQuery }, { additionalProperties: false }) }
    }, async (request, reply) => paginate(ITEMS.filter((item) => matchesTags(item.tags, request.query.tags)), request.query, (item) => item.id, request, reply))
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

  t.same(ids(await send({ url: '/things?after=c' })), ['d', 'e'])
  t.same(ids(await send({ url: '/things?after=e&limit=5' })), [])
  t.equal((await send({ url: '/things?limit=5' })).headers['link'], undefined, 'the last page has no link')
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
