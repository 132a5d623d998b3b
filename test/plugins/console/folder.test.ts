// The archive that the page makes of a folder, as tar reads it.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { pageModule } from './page-module.ts'

interface Page { pack (files: ReadonlyArray<{ readonly path: string, readonly file: Blob }>): Promise<Blob> }

const run = promisify(execFile)
const DEEP = `${'folder/'.repeat(60)}words`
const FILES = { Dockerfile: 'FROM scratch\n', [DEEP]: 'y'.repeat(1000), 'ünï <b>.txt': '', 'whole block': 'z'.repeat(512), [`${'z'.repeat(150)}.txt`]: 'of a long name' }

t.test('a folder with deep paths, empty files and names of all kinds is what tar takes out of it', async (t) => {
  const { pack } = await pageModule<Page>(t, 'pages/builds/folder.ts')
  const folder = await mkdtemp(join(tmpdir(), 'berth-folder-'))
  t.teardown(async () => { await rm(folder, { recursive: true }) })
  const archive = await pack(Object.entries(FILES).map(([path, text]) => ({ path, file: new Blob([text]) })))
  await writeFile(join(folder, 'source.tar.gz'), Buffer.from(await archive.arrayBuffer()))
  await mkdir(join(folder, 'out'), { recursive: true })
  await run('tar', ['--extract', '--gzip', '--file', join(folder, 'source.tar.gz'), '--directory', join(folder, 'out')])
  for (const [path, text] of Object.entries(FILES)) t.equal(await readFile(join(folder, 'out', path), 'utf8'), text, path)
})

t.test('a file that cannot be read is told, and there is no archive of the others', async (t) => {
  const gone = Object.assign(new Blob(['12345']), { stream: () => new ReadableStream({ pull: (controller) => { controller.error(new Error('it was removed meanwhile')) } }) })
  const { pack } = await pageModule<Page>(t, 'pages/builds/folder.ts')
  await t.rejects(pack([{ path: 'gone', file: gone }]), { message: 'it was removed meanwhile' })
})
