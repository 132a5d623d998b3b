// What a failed test of VMs leaves in the output: the server's log and the consoles, their ends, whatever is missing.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { evidence } from '../helpers/evidence.ts'
import { testFolder } from '../helpers/folder.ts'

t.test('warnings, the last lines of the log, and the end of each console are shown', async (t) => {
  const folder = testFolder(t)
  const numbered = (word: string): string => Array.from({ length: 100 }, (_, index) => `${word} ${index}`).join('\n')
  await mkdir(join(folder, 'data/instances/one'), { recursive: true })
  await writeFile(join(folder, 'log'), `{"level":"warn","msg":"something"}\n${Array.from({ length: 100 }, (_, index) => `{"level":"info","msg":"line ${index}"}`).join('\n')}\n`)
  await writeFile(join(folder, 'data/instances/one/output.log'), numbered('console'))
  await writeFile(join(folder, 'data/instances/one/overlay.ext4'), 'a disk')
  const text = await evidence(join(folder, 'log'), join(folder, 'data'))
  t.match(text, /"something"/)
  t.match(text, /"line 99"/)
  t.notMatch(text, /"line 50"/)
  t.match(text, /VM one, the end of output\.log:\n[^]*console 99/)
  t.notMatch(text, /console 50\n/)
  t.notMatch(text, /a disk/)
})

t.test('what cannot be read is said and hides no other failure', async (t) => {
  t.match(await evidence('/nowhere/log', '/nowhere/data'), /could not be read: .*ENOENT/)
})
