// What a plugin that is turned off has left is ended by a file of its own, without its index being imported.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import t from 'tap'
import { buildApp } from '../../../core/app.ts'
import { temporaryData } from '../../plugins/instances/app.ts'

t.test('leftovers of a plugin that is off are ended before the others start, and one that cannot end its own stops nobody', async (t) => {
  const folder = await temporaryData(t)
  const add = async (id: string, file: string, text: string): Promise<void> => {
    await mkdir(join(folder, 'builtin', id), { recursive: true })
    await writeFile(join(folder, 'builtin', id, file), text)
  }
  await writeFile(join(folder, 'package.json'), '{"type":"module"}')
  for (const id of ['tidy', 'broken', 'plain']) await add(id, 'index.js', 'throw new Error("imported")\n')
  await add('broken', 'turned-off.js', 'export const endLeftovers = async () => { throw new Error("nothing works") }\n')
  await add('tidy', 'turned-off.js', 'import { writeFile } from "node:fs/promises"\nexport const endLeftovers = async ({ dataDir, log, commands }) => { await commands.run("true", []); log.info("ended"); await writeFile(dataDir + "/ended", "yes") }\n')
  const lines: string[] = []
  const app = await buildApp({ server: { dataDir: join(folder, 'data') }, plugins: { tidy: { enabled: false }, broken: { enabled: false }, plain: { enabled: false } } }, {
    environment: {}, builtIns: pathToFileURL(join(folder, 'builtin/')), logStream: { write: (line) => { lines.push(line) } }
  })
  t.teardown(async () => { await app.stop() })
  await app.start({ listen: false })
  t.equal(await readFile(join(folder, 'data/ended'), 'utf8'), 'yes')
  t.match(lines.find((line) => line.includes('"plugin":"broken"')), /nothing works/)
  t.same(app.plugins.list().map(({ state }) => state), ['disabled', 'disabled', 'disabled'])
})
