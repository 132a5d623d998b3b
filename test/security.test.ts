// SECURITY.md names tests for what it promises: each of them exists, under that name.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../core/package-root.ts'
import { wentWithItsPlugin } from '../setup/structure/deleted.ts'
import { holds } from './helpers/named-test.ts'

t.test('each promise is held by tests that exist', async (t) => {
  const text = await readFile(join(packageRoot, 'SECURITY.md'), 'utf8')
  const rows = text.split('\n').filter(line => line.startsWith('| ') && line.includes('](test/'))
  t.ok(rows.length >= 10)
  for (const row of rows) {
    for (const part of (row.split(' | ')[1] ?? '').split('[').slice(1)) {
      const path = /\]\((test\/[^)]+)\)/.exec(part)?.[1] ?? 'no file'
      if (wentWithItsPlugin(path)) continue
      const source = await readFile(join(packageRoot, path), 'utf8')
      const names = [...part.matchAll(/"([^"]+)"/g)].map(match => match[1] ?? '')
      t.ok(names.length > 0, `${path} is named with its tests`)
      for (const name of names) t.ok(holds(source, name), `${path}: ${name}`)
    }
  }
})
