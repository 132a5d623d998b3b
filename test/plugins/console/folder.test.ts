// The archive that the page makes of a folder, as tar reads it.
import { execFile } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import t from 'tap'
import { packageRoot } from '../../../core/package-root.ts'

interface Page { pack (files: ReadonlyArray<{ readonly path: string, readonly file: Blob }>): Promise<Blob> }

const run = promisify(execFile)
const DEEP = `${'folder/'.repeat(16)}words`
const FILES = { Dockerfile: 'FROM scratch\n', [DEEP]: 'y'.repeat(1000), 'ünï <b>.txt': '', 'whole block': 'z'.repeat(512) }

t.test('a folder with deep paths, empty files and names of all kinds is what tar takes out of it', async (t) => {
  const folder = t.testdir({ out: {} })
  const outfile = join(folder, 'folder.mjs')
  await build({ entryPoints: [join(packageRoot, 'plugins/console/web/pages/builds/folder.ts')], bundle: true, format: 'esm', outfile })
  const { pack } = await import(pathToFileURL(outfile).href) as Page
  const archive = await pack(Object.entries(FILES).map(([path, text]) => ({ path, file: new Blob([text]) })))
  await writeFile(join(folder, 'source.tar.gz'), Buffer.from(await archive.arrayBuffer()))
  await mkdir(join(folder, 'out'), { recursive: true })
  await run('tar', ['--extract', '--gzip', '--file', join(folder, 'source.tar.gz'), '--directory', join(folder, 'out')])
  for (const [path, text] of Object.entries(FILES)) t.equal(await readFile(join(folder, 'out', path), 'utf8'), text, path)
  await t.rejects(pack([{ path: 'z'.repeat(101), file: new Blob([]) }]), { message: /the path z+ is too long/i })
})
