// The lists of the READMEs, what always holds and what is there after a server has died, against the list of the tests that hold them: neither has a line that the other lacks.
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { packageRoot } from '../core/package-root.ts'
import { wentWithItsPlugin } from '../setup/structure/deleted.ts'
import { holds } from './helpers/named-test.ts'
import { PROMISES } from './promises/list.ts'

const SECTION = '## What always holds'
const TABLE = 'the server dies'

/** The lines of the section "What always holds", and the rows of each table about a server that dies. */
function promisesIn (text: string): string[] {
  const found: string[] = []
  let isIn = false
  let isTable = false
  for (const line of text.split('\n')) {
    if (line.startsWith('## ')) isIn = line === SECTION
    if (line.startsWith('|') && line.includes(TABLE)) isTable = true
    else if (!line.startsWith('|')) isTable = false
    else if (isTable && !line.startsWith('|-')) found.push(line.slice(2))
    if (isIn && line.startsWith('- ')) found.push(line.slice(2))
  }
  return found
}

async function readmes (): Promise<string[]> {
  const all = await readdir(packageRoot, { recursive: false })
  const found: string[] = all.includes('README.md') ? ['README.md'] : []
  for (const folder of ['cli', 'core', 'plugins', 'proxy', 'systemd', 'setup']) {
    for (const path of await readdir(join(packageRoot, folder), { recursive: true })) if (path.endsWith('README.md')) found.push(join(folder, path))
  }
  return found
}

t.test('each line of a README that promises has its tests, in the order of the README, and each is there under that name', async (t) => {
  const seen: string[] = []
  for (const file of await readmes()) {
    const lines = promisesIn(await readFile(join(packageRoot, file), 'utf8'))
    if (lines.length === 0) continue
    seen.push(file)
    const held = PROMISES[file] ?? []
    t.same(lines.map((line, index) => line.startsWith(held[index]?.line ?? '\0') ? '' : `"${line.slice(0, 60)}" is not held by "${held[index]?.line ?? 'anything'}"`).filter(problem => problem !== ''), [], file)
    t.equal(held.length, lines.length, file)
    for (const { line, tests } of held) {
      for (const [path, names] of Object.entries(tests)) {
        if (wentWithItsPlugin(path)) continue
        const source = await readFile(join(packageRoot, path), 'utf8')
        t.ok(names.length > 0, `${line} names a test of ${path}`)
        for (const name of names) t.ok(holds(source, name), `${path}: ${name}`)
      }
    }
  }
  t.same(seen.sort(), Object.keys(PROMISES).filter(path => !wentWithItsPlugin(path)).sort(), 'no README is named that promises nothing')
})

t.test('a name of which there is only the beginning is not held', async (t) => {
  const source = "t.test('the guest\\'s clock is set', async (t) => {})\nt.test(`killed at ${step}`, async (t) => {})\n"
  for (const name of ["the guest's clock is set", 'killed at ${step}']) t.ok(holds(source, name), name)
  for (const name of ["the guest's clock", 'killed', '']) t.notOk(holds(source, name), name)
})
