// A VM behind a VMM's REST API: its guest's stream, and the watch over its state.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, writeFile } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { ProcessIdentity } from '../../../../core/contracts/services.ts'
import type { VmStatus } from '../../../../core/library/hypervisor.ts'
import { VmmSilent } from '../../../../core/library/vmm/errors.ts'
import { makeHandle } from '../../../../core/library/vmm/handle.ts'
import { createRestImaging } from '../../../../core/library/vmm/rest-capture.ts'
import { RestVm, type RestVmOptions, type RestVmParts } from '../../../../core/library/vmm/rest-vm.ts'
import { runFolder, type RunFolder } from '../../../../core/library/vmm/run-folder.ts'
import { AGENT_PORT, connectGuest } from '../../../../core/library/vmm/vsock.ts'
import { readIdentity } from '../../../../core/process/identity.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { listenUnix } from '../../../../core/process/unix-socket.ts'
import { eventually } from '../../../helpers/eventually.ts'
import { testFolder } from '../../../helpers/folder.ts'

const commands = createHostCommands()

const ANSWER_MS = 20

interface Around {
  readonly ask?: RestVmParts['ask']
  readonly identity?: ProcessIdentity
  readonly heartbeat?: RestVmOptions['heartbeat']
  /** connections to the guest */
  readonly guest?: (socket: Socket) => void
  /** connections to the API's socket that no question is asked on */
  readonly line?: (socket: Socket) => void
  readonly onError?: (error: unknown) => void
  readonly imaging?: RestVmParts['imaging']
}

/** A VM whose VMM is this test. */
async function makeVm (t: Test, { ask = async () => await Promise.resolve({ status: 'running' }), identity = itself(), heartbeat = { intervalMs: 60_000, deadlineMs: 60_000 }, guest = () => {}, line = () => {}, onError = (error) => { t.error(error) }, imaging }: Around): Promise<{ readonly vm: RestVm, readonly folder: RunFolder }> {
  const path = await mkdtemp(join(tmpdir(), 'berth-vm-'))
  const folder = runFolder(path, 'test', 'test')
  await mkdir(folder.room)
  const sockets = new Set<Socket>()
  const servers = ([['v', guest], ['a', line]] as const).map(([name, serve]) => ({
    name,
    server: createServer((socket) => {
      sockets.add(socket.on('error', () => {}))
      serve(socket)
    })
  }))
  for (const { name, server } of servers) await listenUnix(server, folder.room, name)
  const handle = makeHandle({ driver: 'test', process: identity, directory: path, vmmVersion: '1', image: { key: '', shape: {}, vcpus: 1, memoryBytes: 1 } })
  const vm = new RestVm({ handle, identity, folder, reach: (timeoutMs) => connectGuest(folder.room, 'v', AGENT_PORT, timeoutMs), api: 'a', ask, ...imaging === undefined ? {} : { imaging } }, { status: 'hung' }, { heartbeat, guestTimeoutMs: 5000, onError })
  t.teardown(async () => {
    vm.release()
    for (const socket of sockets) socket.destroy()
    // It removes its socket, which must not go while its folder is being read.
    await Promise.all(servers.map(async ({ server }) => { await new Promise((resolve) => { server.close(resolve) }) }))
    await commands.run('rm', ['-rf', path])
  })
  return { vm, folder }
}

function itself (): ProcessIdentity {
  const identity = readIdentity(process.pid)
  if (identity === undefined) throw new Error('this process is not there')
  return identity
}

await t.test('of streams that are opened at once each reaches the guest after the one before it, so that the last caller has the one that the guest keeps', async (t) => {
  let [unanswered, most] = [0, 0]
  let kept: Socket | undefined
  const { vm } = await makeVm(t, {
    // Like a guest, it ends a stream when another one comes.
    guest (socket) {
      most = Math.max(most, ++unanswered)
      kept?.destroy()
      kept = socket
      setTimeout(() => {
        unanswered--
        socket.write('OK 1073741824\n')
      }, ANSWER_MS)
    }
  })
  const streams = await Promise.all([vm.connect(), vm.connect(), vm.connect()])
  t.equal(most, 1, 'one asks at a time')
  t.same(streams.map(({ destroyed }) => destroyed), [true, true, false])
})

await t.test('a VM that was released opens no stream any more: another server may have one, which the guest would end', async (t) => {
  let asked = 0
  const sockets: Socket[] = []
  const { vm } = await makeVm(t, {
    guest (socket) {
      asked++
      sockets.push(socket)
    }
  })
  const early = vm.connect()
  await eventually('it asks the guest', () => asked === 1)
  vm.release()
  // The guest boots and answers only now.
  for (const socket of sockets) socket.write('OK 1073741824\n')
  t.equal((await early).destroyed, true)
  t.equal((await vm.connect()).destroyed, true)
  t.equal(asked, 1)
})

await t.test('a VM whose VMM reports no state that is known counts as hung, so that a server that takes it over gets on', async (t) => {
  const { vm } = await makeVm(t, { ask: async () => await Promise.resolve(undefined), heartbeat: { intervalMs: 20, deadlineMs: 50 } })
  await vm.known()
  t.match(vm.state, { status: 'hung' })
})

await t.test('a VMM that ends idle connections at once is asked no more than twice in a heartbeat', async (t) => {
  let asked = 0
  const { vm } = await makeVm(t, {
    async ask () {
      asked++
      return await Promise.resolve({ status: 'running' })
    },
    line: (socket) => { setTimeout(() => socket.destroy(), 1) },
    heartbeat: { intervalMs: 100, deadlineMs: 60_000 }
  })
  await vm.known()
  await sleep(1000)
  t.ok(asked >= 3 && asked <= 22, `${asked} times in a second`)
})

await t.test('a VMM that is too slow for a heartbeat is paused and captured all the same, and a VM that was captured is not resumed for it', async (t) => {
  const path = testFolder(t, { memory: 'all of it' })
  const [state, memory] = [join(path, 'saved-state'), join(path, 'saved-memory')]
  let status: VmStatus = 'running'
  const { vm } = await makeVm(t, {
    ask: async () => { throw VmmSilent('the VMM', 'GET /', 1) },
    heartbeat: { intervalMs: 60_000, deadlineMs: 60_000 },
    imaging: (vm) => createRestImaging({ vm, handle: vm.handle, commands, ask: async () => await Promise.resolve({ status }) }, {
      imageVersion: 1,
      set: async (wanted) => { status = wanted },
      clear: async () => {},
      write: async () => {},
      takeState: (to) => writeFile(to, ''),
      memory: join(path, 'memory')
    })
  })
  await vm.imaging?.capture({ statePath: state, memoryPath: memory })
  t.equal(status, 'paused')
})

await t.test('an error that nobody foresaw does not end the watch over a VM', async (t) => {
  const errors: unknown[] = []
  const { vm } = await makeVm(t, {
    async ask () {
      if (errors.length === 0) throw Object.assign(new Error('too many open files'), { code: 'EMFILE' })
      return await Promise.resolve({ status: 'running' })
    },
    heartbeat: { intervalMs: 20, deadlineMs: 50 },
    onError: (error) => { errors.push(error) }
  })
  await vm.known()
  t.equal(vm.state.status, 'running')
  t.match(errors, [{ code: 'EMFILE' }])
})

await t.test('a VM whose VMM has left a folder that cannot be removed is gone all the same when it has ended', async (t) => {
  const child = spawn('sleep', ['60'], { stdio: 'ignore' })
  t.teardown(() => child.kill('SIGKILL'))
  const identity = child.pid === undefined ? undefined : readIdentity(child.pid)
  const errors: unknown[] = []
  const { vm, folder } = await makeVm(t, { ...identity === undefined ? {} : { identity }, onError: (error) => { errors.push(error) } })
  // Its paths are longer than any path may be.
  await commands.run('sh', ['-c', 'name=$(printf %0250d 0); for _ in $(seq 20); do mkdir "$name" && cd -P "$name" || exit 1; done'], { cwd: folder.room })
  await eventually('it runs', () => vm.state.status === 'running')
  const heard: string[] = []
  vm.onState(({ status }) => heard.push(status))
  await vm.kill()
  await vm.wait()
  t.same(heard, ['gone'])
  t.same(errors, [])
  t.notOk(existsSync(folder.path), 'it is out of the way of the next one')
  await eventually('what takes long to remove is removed afterwards', async () => !(await readdir(dirname(folder.path))).some((name) => name.startsWith(basename(folder.path))))
})
