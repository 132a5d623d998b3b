// What an open list of the console makes of the events that come: the page's own code, at a server that answers when the test wants.
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import t, { type Test } from 'tap'
import { eventually } from '../../helpers/eventually.ts'
import { pageModule } from './page-module.ts'

interface Loaded { readonly data: { readonly value: ReadonlyArray<{ readonly id: string }> | undefined }, reload (): void, later (id?: string): void, forget? (id: string): void }
interface Page { createLoaded (url: string): Loaded, createRows (url: string): Loaded, noteEvent (loaded: Loaded, event: unknown): void }

const deleted = (id: string): unknown => ({ type: 'thing.deleted', data: { resource: 'thing', id } })
const idsOf = ({ data }: Loaded): string[] | undefined => data.value?.map(({ id }) => id)

t.test('what is deleted leaves a list, also one that is read as a whole', async (t) => {
  const { page, server } = await start(t)
  server.rows = ['a', 'b', 'c']
  const [whole, rows] = [page.createLoaded('/things'), page.createRows('/things')]
  for (const list of [whole, rows]) {
    list.reload()
    await eventually('the list', () => idsOf(list)?.length === 3)
  }
  server.rows = ['a', 'c']
  page.noteEvent(whole, deleted('b'))
  page.noteEvent(rows, deleted('b'))
  t.same(idsOf(rows), ['a', 'c'], 'at once where rows are known one by one')
  await eventually('it is read again', () => idsOf(whole)?.length === 2)
  t.same(idsOf(whole), ['a', 'c'])
})

t.test('a deletion during a read is not undone by its answer', async (t) => {
  const { page, server } = await start(t)
  server.rows = ['a', 'b']
  const rows = page.createRows('/things')
  const answers: ServerResponse[] = []
  server.answer = (response) => { answers.push(response) }
  rows.reload()
  const held = await eventually('the read', () => answers[0])
  const older = JSON.stringify([{ id: 'a' }, { id: 'b' }])
  server.rows = ['a']
  server.answer = undefined
  page.noteEvent(rows, deleted('b'))
  held.end(older)
  t.ok(await eventually('the list without it', () => idsOf(rows)?.join() === 'a'))
})

interface Things { rows: readonly string[], answer: ((response: ServerResponse) => void) | undefined }

async function start (t: Test): Promise<{ page: Page, server: Things }> {
  const things: Things = { rows: [], answer: undefined }
  const server = createServer((_request, response) => {
    if (things.answer !== undefined) things.answer(response)
    else response.end(JSON.stringify(things.rows.map((id) => ({ id }))))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const { fetch: fetchHere } = globalThis
  // A page's addresses are those of its server.
  globalThis.fetch = async (path, init) => await fetchHere(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}${String(path)}`, init)
  t.teardown(() => {
    globalThis.fetch = fetchHere
    server.closeAllConnections()
    server.close()
  })
  return { page: await pageModule<Page>(t, 'state/list.ts'), server: things }
}
