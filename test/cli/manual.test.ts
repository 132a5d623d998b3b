// The manual page and the README's list of commands: both are of the catalogue.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { SECTIONS } from '../../cli/catalogue/all.ts'
import { commandTable } from '../../cli/manual/table.ts'
import { manualPage } from '../../cli/manual/page.ts'
import { packageRoot } from '../../core/package-root.ts'
import { testFolder } from '../helpers/folder.ts'

const execute = promisify(execFile)

t.test('the manual page has every command with its options and examples, and no line that roff could mistake', async (t) => {
  const page = manualPage()
  const plain = page.replaceAll('\\-', '-')
  for (const { name, options = [] } of SECTIONS.flatMap(({ commands }) => commands)) {
    t.ok(plain.includes(`.SS "berth ${name}`), name)
    for (const { flags } of options) t.ok(plain.includes(`.B "${flags}"`), `${name} ${flags}`)
  }
  for (const line of page.split('\n')) if (/^[.']/.test(line)) t.match(line, /^\.(?:TH|SH|SS|TP|PP|B|BR|nf|fi|RS|RE)(?: |$)/)
  t.notMatch(page, /[^\n\x20-\x7e]/)
})

const groff = ['/usr/bin/groff', '/bin/groff'].find(existsSync)
t.test('roff takes the page without a warning', { skip: groff === undefined && 'groff is not installed' }, async (t) => {
  const file = join(testFolder(t), 'berth.1')
  await writeFile(file, manualPage())
  const { stdout, stderr } = await execute(groff ?? '', ['-man', '-Tascii', '-ww', file])
  t.equal(stderr, '')
  t.match(stdout, /berth run/)
})

t.test('the README of the command lists all commands as the catalogue has them', async (t) => {
  const file = join(packageRoot, 'cli/README.md')
  const readme = await readFile(file, 'utf8')
  const [before, , after] = readme.split(/(?<=<!-- commands -->\n)|(?=<!-- end of commands -->)/)
  const expected = `${before ?? ''}${commandTable()}${after ?? ''}`
  if (process.env['BERTH_TEST_RECORD'] === '1') await writeFile(file, expected)
  t.equal(readme, expected)
})
