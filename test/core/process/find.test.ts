import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, realpath } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { removeTree } from '../../../core/fs/durable.ts'
import { folderOf } from '../../../core/process/find.ts'

t.test('the folder of a process is told, and one that is deeper than a path can be long is none', async (t) => {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'berth-find-')))
  t.teardown(async () => { await removeTree(folder) })
  // Anybody on the host may have such a process, and a server looks at all of them as it starts.
  const child = spawn('sh', ['-c', 'echo here; read go; name=$(printf %0250d 0); for _ in $(seq 20); do mkdir "$name" && cd -P "$name" || exit 1; done; echo deep; read end'], { cwd: folder, stdio: ['pipe', 'pipe', 'inherit'] })
  t.teardown(() => { child.kill('SIGKILL') })
  const { pid } = child
  if (pid === undefined) throw new Error('it was not started')
  await once(child.stdout, 'data')
  t.equal(await folderOf(pid), folder)
  child.stdin.write('\n')
  await once(child.stdout, 'data')
  t.equal(await folderOf(pid), undefined)
})
