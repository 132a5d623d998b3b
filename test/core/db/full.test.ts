// A database whose disk is full, with a real SQLite: callers hear that it is, and nothing has to be restarted when there is room again.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { Type } from 'typebox'
import { buildApp } from '../../../core/app.ts'
import { definePlugin } from '../../../core/plugins/manifest.ts'

const KEY = 'a-key-for-the-test'
const MOST_PAGES = 1_073_741_823
/** more than the room that a server keeps in its database */
const ROW = 'row '.repeat(2_000_000)

/** Routes that write rows as plugins do, and that let the file grow or not: SQLite says the same of that limit as of a disk without room. */
const writing = definePlugin({
  manifest: { id: 'writing', provides: [], requires: ['database'], config: Type.Object({}, { additionalProperties: false }) },
  create: ({ database }) => ({
    async routes (http) {
      const route = { config: { scope: 'resource:read' }, schema: { response: { 200: Type.Object({}, { additionalProperties: false }) } } } as const
      http.post('/row', route, async () => {
        await database.raw('CREATE TABLE IF NOT EXISTS writing_rows (content TEXT)')
        await database('writing_rows').insert({ content: ROW })
        return {}
      })
      http.post('/full', route, async () => {
        await database.raw('PRAGMA max_page_count = 1')
        return {}
      })
      http.post('/roomy', route, async () => {
        await database.raw(`PRAGMA max_page_count = ${MOST_PAGES}`)
        return {}
      })
    }
  })
})

t.test('a row that has no room on the disk is refused with 409 insufficient_resources, and written once there is room', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-full-'))
  t.teardown(async () => { await rm(dataDir, { recursive: true, force: true }) })
  const app = await buildApp({ server: { dataDir, listen: '127.0.0.1:0', apiKey: KEY, metrics: { enabled: false } }, log: { level: 'fatal' } }, {
    environment: {}, builtIns: pathToFileURL('/nonexistent/'), plugins: [writing]
  })
  t.teardown(async () => { await app.stop() })
  await app.start()
  const post = async (path: string): Promise<{ status: number, shouldRetry: string | null, body: unknown }> => {
    const response = await fetch(app.address() + path, { method: 'POST', headers: { authorization: `Bearer ${KEY}` } })
    return { status: response.status, shouldRetry: response.headers.get('x-should-retry'), body: await response.json() }
  }
  t.match(await post('/row'), { status: 200 })
  await post('/full')
  t.match(await post('/row'), { status: 409, shouldRetry: 'false', body: { code: 'insufficient_resources', message: /the disk of the data folder is full/ } })
  await post('/roomy')
  t.match(await post('/row'), { status: 200 })
})
