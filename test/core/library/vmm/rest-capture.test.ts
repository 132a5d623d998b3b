// The imaging of a VM with a REST API: what the server takes over of a hostile VMM is what that has written, and calls that come together do not disturb each other.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { lstat, mkdtemp, readFile, rm, stat, symlink, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { hasCode } from '../../../../core/errors/system-code.ts'
import { CaptureFailed, VmmRefused } from '../../../../core/library/vmm/errors.ts'
import { makeHandle } from '../../../../core/library/vmm/handle.ts'
import { copyWritten, createRestImaging } from '../../../../core/library/vmm/rest-capture.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { eventually } from '../../../helpers/eventually.ts'

/** Of so many, some meet the link between a look and what follows. */
const CAPTURES = 60

await t.test('a memory file that the VMM replaces by a link while it is taken over is refused, and the link does not become the image\'s memory', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-capture-'))
  await writeFile(join(folder, 'other'), 'of another VM')
  const [memory, statePath, memoryPath] = ['written', 'state', 'memory'].map((name) => join(folder, name)) as [string, string, string]
  const vmm = spawn(process.execPath, [fileURLToPath(new URL('swap-forever.js', import.meta.url)), memory, join(folder, 'other')], { stdio: 'ignore' })
  t.teardown(async () => {
    vmm.kill('SIGKILL')
    await once(vmm, 'exit')
    await rm(folder, { recursive: true })
  })
  await eventually('it writes', () => existsSync(memory))
  const imaging = createRestImaging({
    vm: { refresh: async () => {} },
    handle: makeHandle({ driver: 'test', process: { pid: 1, startTicks: '1', bootId: '1' }, directory: folder, vmmVersion: '1', image: { key: '', shape: {}, vcpus: 1, memoryBytes: 1 } }),
    commands: createHostCommands(),
    ask: async () => await Promise.resolve({ status: 'running' })
  }, {
    imageVersion: 1,
    set: async () => {},
    clear: async () => {},
    // It is there already.
    write: async () => {},
    takeState: async (to) => { await writeFile(to, '') },
    memory
  })
  for (let count = 0; count < CAPTURES; count++) {
    try {
      await imaging.capture({ statePath, memoryPath })
      if (!(await lstat(memoryPath)).isFile()) return t.fail('the image\'s memory is a link to another VM\'s')
    } catch (error) {
      // ENOENT: the last capture has taken it.
      if (!CaptureFailed.is(error) && !hasCode(error, 'ENOENT')) throw error
    }
    for (const path of [statePath, memoryPath]) await rm(path, { force: true })
  }
  t.pass('never a link')
})

await t.test('a VM that is paused by two callers at once is paused once, and the second has nothing to do', async (t) => {
  let status: 'paused' | 'running' = 'running'
  const imaging = createRestImaging({
    vm: { refresh: async () => {} },
    handle: makeHandle({ driver: 'test', process: { pid: 1, startTicks: '1', bootId: '1' }, directory: '/', vmmVersion: '1', image: { key: '', shape: {}, vcpus: 1, memoryBytes: 1 } }),
    commands: createHostCommands(),
    ask: async () => await Promise.resolve({ status })
  }, {
    imageVersion: 1,
    // As Cloud Hypervisor does it.
    async set (wanted) {
      await sleep(5)
      if (status === wanted) throw VmmRefused('the VMM', 'PUT /vm', `InvalidStateTransition(${status}, ${wanted})`)
      status = wanted
    },
    clear: async () => {},
    write: async () => {},
    takeState: async () => {},
    memory: ''
  })
  for (const call of [imaging.pause, imaging.resume]) await Promise.all([call(), call()])
  t.equal(status, 'running')
})

await t.test('what a server that was killed during a capture has left with the VMM goes as its VM goes on', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-capture-'))
  t.teardown(async () => { await rm(folder, { recursive: true }) })
  const written = join(folder, 'written')
  await writeFile(written, 'half of the memory')
  let status: 'paused' | 'running' = 'paused'
  let whenCleared: string | undefined
  const imaging = createRestImaging({
    vm: { refresh: async () => {} },
    handle: makeHandle({ driver: 'test', process: { pid: 1, startTicks: '1', bootId: '1' }, directory: folder, vmmVersion: '1', image: { key: '', shape: {}, vcpus: 1, memoryBytes: 1 } }),
    commands: createHostCommands(),
    ask: async () => await Promise.resolve({ status })
  }, {
    imageVersion: 1,
    set: async (wanted) => { status = wanted },
    async clear () {
      whenCleared = status
      await rm(written, { force: true })
    },
    write: async () => {},
    takeState: async () => {},
    memory: written
  })
  await imaging.resume()
  t.equal(whenCleared, 'running', 'its guest does not wait for it')
  t.notOk(existsSync(written))
})

await t.test('a state file that is larger than any state is refused, and nothing of it is copied', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-capture-'))
  t.teardown(async () => { await rm(folder, { recursive: true }) })
  const [written, state] = [join(folder, 'written'), join(folder, 'state')]
  await writeFile(written, 'of its devices')
  await copyWritten(written, state)
  t.equal(await readFile(state, 'utf8'), 'of its devices')
  t.equal((await stat(state)).mode & 0o777, 0o600)
  await t.rejects(copyWritten(written, state), { code: 'EEXIST' })
  await rm(state)
  // It takes no room where it is, and all of it where it is copied to.
  await truncate(written, 64 * 2 ** 20 + 1)
  await t.rejects(copyWritten(written, state), { code: 'vm_capture_failed', message: /more than 67108864 bytes of state/ })
  t.notOk(existsSync(state))
  await rm(written)
  await symlink('/etc/hostname', written)
  await t.rejects(copyWritten(written, state), { code: 'ELOOP' })
})
