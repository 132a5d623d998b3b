// Starts the kernel on a small file system, fills that, and prints what still works as JSON. Arguments: the data folder, and how the first server ends: `stop` or `kill`.
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Type } from 'typebox'
import { buildApp } from '../../../../core/app.ts'
import { isDiskFull } from '../../../../core/fs/disk-full.ts'
import { hasCode } from '../../../../core/errors/system-code.ts'
import { definePlugin } from '../../../../core/plugins/manifest.ts'

const [dataDir = '', order = ''] = process.argv.slice(2)
const KEY = 'a-key-for-the-test'
const ROWS = 20
const GROWTH = 1000
const PIECE = Buffer.alloc(4096)

const keeping = definePlugin({
  manifest: { id: 'keeping', provides: [], requires: ['database'], config: Type.Object({}, { additionalProperties: false }) },
  create: ({ database }) => ({
    async routes (http) {
      const schema = { response: { 200: Type.Object({ left: Type.Integer() }, { additionalProperties: false }) } }
      http.post('/fill', { config: { scope: 'resource:read' }, schema }, async () => {
        await database.raw('CREATE TABLE keeping (id INTEGER)')
        for (let id = 0; id < ROWS; id++) await database('keeping').insert({ id })
        return { left: ROWS }
      })
      http.post('/grow', { config: { scope: 'resource:read' }, schema: { response: { 200: Type.Object({ grown: Type.Boolean() }, { additionalProperties: false }) } } }, async () => {
        await database.raw('CREATE TABLE growing (text TEXT)').catch(() => undefined)
        for (let made = 0; made < GROWTH; made++) {
          // As in an API of which creates fail, and are asked for again.
          await database('growing').insert({ text: 'x'.repeat(500) }).catch((error: unknown) => { if (!isDiskFull(error)) throw error })
        }
        return { grown: true }
      })
      http.post('/take', { config: { scope: 'resource:read' }, schema }, async () => {
        const { id } = await database('keeping').min('id as id').first<{ id: number }>()
        await database('keeping').where({ id }).delete()
        return { left: (await database('keeping').count({ left: '*' }).first<{ left: number }>()).left }
      })
    }
  })
})

async function start () {
  const app = await buildApp({ server: { dataDir, listen: '127.0.0.1:0', apiKey: KEY, metrics: { enabled: false } }, log: { level: 'fatal' } }, { environment: {}, builtIns: pathToFileURL('/nonexistent/'), plugins: [keeping] })
  await app.start()
  const post = async (path: string): Promise<string> => {
    const response = await fetch(app.address() + path, { method: 'POST', headers: { authorization: `Bearer ${KEY}` } })
    return `${response.status} ${await response.text()}`
  }
  return { app, post }
}

function fillDisk (): void {
  const file = openSync(join(dataDir, 'filler'), 'a')
  try {
    while (true) writeSync(file, PIECE)
  } catch (error) {
    if (!hasCode(error, 'ENOSPC')) throw error
  }
  closeSync(file)
}

if (order === 'again') {
  const { app, post } = await start()
  console.log(JSON.stringify([await post('/take'), await post('/take')]))
  await app.stop()
} else {
  const { app, post } = await start()
  await post('/fill')
  fillDisk()
  const answers = [await post('/take'), await post('/grow'), await post('/take')]
  if (order === 'stop') await app.stop()
  // What an orderly end gives back is taken, too.
  fillDisk()
  console.log(JSON.stringify(answers))
  if (order === 'kill') process.kill(process.pid, 'SIGKILL')
}
