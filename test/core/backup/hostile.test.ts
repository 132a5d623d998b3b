// A backup whose manifest was written by somebody else: nothing outside of the data folder is changed.
import { mkdir, readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { backedUp, berth } from './bare-backup.ts'

for (const [name, again] of [['the same path', 'way'], ['the path with a slash at its end', 'way/']] as const) {
  t.test(`a manifest that names a link and then a folder by ${name} is refused`, async (t) => {
    const { backup, folder } = await backedUp(t)
    const outside = join(folder, 'outside')
    await mkdir(outside, { mode: 0o700 })
    const file = join(backup, 'manifest.json')
    const manifest = JSON.parse(await readFile(file, 'utf8'))
    const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
    manifest.entries.push({ kind: 'link', path: 'way', mode: 0o777, ...own, target: outside }, { kind: 'folder', path: again, mode: 0o777, ...own })
    await writeFile(file, JSON.stringify(manifest))
    t.match(await berth(join(folder, 'target'), 'restore', backup), { code: 1, said: /the backup names "way\/?"/ })
    t.equal((await stat(outside)).mode & 0o777, 0o700)
    t.notOk((await readdir(folder)).includes('target'))
  })
}

for (const name of ['berth.db', 'berth.db-wal', 'lock.db', 'server.pid', 'restore-unfinished']) {
  t.test(`a manifest that names a link in the place of ${name} is refused, and what it leads to is neither made nor opened`, async (t) => {
    const { backup, folder } = await backedUp(t)
    const outside = join(folder, 'outside.db')
    const file = join(backup, 'manifest.json')
    const manifest = JSON.parse(await readFile(file, 'utf8'))
    manifest.entries.push({ kind: 'link', path: name, mode: 0o777, uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, target: outside })
    await writeFile(file, JSON.stringify(manifest))
    t.match(await berth(join(folder, 'target'), 'restore', backup), { code: 1, said: `the backup names "${name}"` })
    t.notOk((await readdir(folder)).some((entry) => entry.startsWith('outside')))
  })
}

t.test('a manifest that names a link in the data folder itself is refused, and what it leads to keeps its files', async (t) => {
  const { backup, folder } = await backedUp(t)
  const outside = join(folder, 'outside')
  await mkdir(outside)
  await writeFile(join(outside, 'file'), 'somebody else\'s')
  const file = join(backup, 'manifest.json')
  const manifest = JSON.parse(await readFile(file, 'utf8'))
  for (const path of ['database-copies', 'keys', 'host-id', 'anything']) {
    const entries = manifest.entries.filter((entry: { path: string }) => entry.path !== path && !entry.path.startsWith(`${path}/`))
    entries.unshift({ kind: 'link', path, mode: 0o777, uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0, target: outside })
    await writeFile(file, JSON.stringify({ ...manifest, entries }))
    t.match(await berth(join(folder, 'target'), 'restore', backup), { code: 1, said: `the backup names "${path}"` })
  }
  t.notOk((await readdir(folder)).includes('target'))
  t.same(await readdir(outside), ['file'])
})

t.test('a manifest that names a link above the database in the data folder is refused', async (t) => {
  const { dataDir, backup, folder } = await backedUp(t)
  const outside = join(folder, 'outside')
  await mkdir(outside)
  const file = join(backup, 'manifest.json')
  const manifest = JSON.parse(await readFile(file, 'utf8'))
  const own = { mode: 0o777, uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
  manifest.entries.push({ kind: 'folder', path: 'sql', ...own }, { kind: 'link', path: 'sql/lite', ...own, target: outside })
  await writeFile(file, JSON.stringify(manifest))
  const config = join(folder, 'berth.yaml')
  await writeFile(config, `server: { dataDir: ${dataDir}-2 }\ndatabase: { url: "sqlite:sql/lite/berth.db" }\n`)
  t.match(await berth(`${dataDir}-2`, 'restore', backup, '--config', config), { code: 1, said: 'the backup names "sql/lite"' })
  t.same(await readdir(outside), [])
})
