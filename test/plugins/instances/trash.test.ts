// Folders of removed instances that cannot be removed at that moment.
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { eventually } from '../../helpers/eventually.ts'
import { withoutMounts } from '../../helpers/rights.ts'
import { startApp, temporaryData } from './app.ts'

const commands = createHostCommands()

t.test('a folder that is busy does not keep the server from its start, and is removed once it can be', { skip: withoutMounts }, async (t) => {
  const dataDir = join(await temporaryData(t), 'data')
  const folder = join(dataDir, 'instances')
  const busy = join(folder, '.trash-busy/mounted')
  await mkdir(busy, { recursive: true })
  await mkdir(join(folder, '.trash-other'))
  await commands.run('mount', ['-t', 'tmpfs', 'tmpfs', busy])
  let isMounted = true
  const unmount = async (): Promise<void> => {
    if (isMounted) await commands.run('umount', [busy])
    isMounted = false
  }
  t.teardown(unmount)
  const lines: Record<string, unknown>[] = []
  await startApp(t, { dataDir, lines })
  t.same((await readdir(folder)).filter((name) => name.startsWith('.trash-')), ['.trash-busy'], 'the other one is gone')
  t.ok(lines.some(({ level, folder: path }) => level === 'warn' && path === join(folder, '.trash-busy')), 'the log says so')
  await unmount()
  await eventually('it is gone', async () => !(await readdir(folder)).includes('.trash-busy'), { limitMs: 30_000 })
})
