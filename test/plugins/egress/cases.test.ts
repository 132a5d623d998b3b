// The list of cases and the names of the tests that carry their ids.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import { listTests } from '../../../setup/test/names.ts'

const idsIn = (text: string): string[] => text.match(/\b[AP]\d{1,2}\b/g) ?? []
const sorted = (ids: Iterable<string>): string[] => [...new Set(ids)].sort()

t.test('each case of the list has a test that carries its id, and each id of a test is in the list', async (t) => {
  const rows = (await readFile(join(packageRoot, 'proxy/CASES.md'), 'utf8')).split('\n').filter(line => /^\| [AP]\d/.test(line))
  const listed = rows.flatMap(row => idsIn(row.split('|')[1] ?? ''))
  t.same(listed, [...new Set(listed)], 'each is listed once')
  const tested = (await listTests(packageRoot)).filter(name => /\/(?:proxy|egress|egress-enforcement|networking|instances)\//.test(name)).flatMap(idsIn)
  t.same(sorted(tested), sorted(listed))
})
