// Debian has busybox twice: the package busybox-static, and busybox, which needs the C library and its loader.
import { spawnSync } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import t from 'tap'
import { SPAWNER_PROGRAM } from '../../../core/process/spawner/spawner.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { placeProgram } from '../../../setup/quickstart/place-program.ts'
import { testFolder } from '../../helpers/folder.ts'

const skip = process.getuid?.() !== 0 && 'to run a program in a root of its own needs root'
const commands = createHostCommands()

t.test('a program that is linked with libraries runs in the root it is put into', { skip }, async (t) => {
  const root = testFolder(t, { bin: {} })
  await placeProgram(commands, '/bin/ls', root, 'bin/busybox')
  const { status, stdout, stderr } = spawnSync('chroot', [root, '/bin/busybox', '/bin'], { encoding: 'utf8' })
  t.same({ status, stdout, stderr }, { status: 0, stdout: 'busybox\n', stderr: '' })
})

t.test('a static program comes alone', async (t) => {
  const root = testFolder(t, { bin: {} })
  await placeProgram(commands, SPAWNER_PROGRAM, root, 'bin/busybox')
  t.same((await readdir(root, { recursive: true })).sort(), ['bin', 'bin/busybox'])
})
