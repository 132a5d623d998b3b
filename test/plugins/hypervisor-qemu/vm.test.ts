// The watch over a QEMU that its guest may control, and that answers what it likes: this test speaks in its place, and its process is one that only waits.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { createHostCommands } from '../../../core/process/run.ts'
import { readIdentity } from '../../../core/process/identity.ts'
import { listenUnix } from '../../../core/process/unix-socket.ts'
import { QMP_SOCKET } from '../../../plugins/hypervisor-qemu/args.ts'
import { createBalloon } from '../../../plugins/hypervisor-qemu/balloon.ts'
import { makeHandle } from '../../../plugins/hypervisor-qemu/handle.ts'
import { QemuVm } from '../../../plugins/hypervisor-qemu/vm.ts'
import { eventually } from '../../helpers/eventually.ts'
import { testFolder } from '../../helpers/folder.ts'

const GREETING = '{"QMP":{"version":{"qemu":{"micro":22,"minor":2,"major":7},"package":"x"},"capabilities":[]}}\r\n'

/** What it says to a command, without its id; undefined: it ends the connection. `tell` says that something has happened, behind the answer. */
type Answer = (command: string, tell: (event: string) => void) => string | undefined

interface Watched { readonly vm: QemuVm, readonly asked: () => number, readonly end: () => Promise<void>, readonly errors: unknown[] }

/** A VM that a server has just taken over. */
async function watched (t: Test, answer: Answer, heartbeat = { intervalMs: 20, deadlineMs: 100 }): Promise<Watched> {
  const directory = testFolder(t, {})
  const folder = join(directory, 'qemu')
  await mkdir(folder)
  const sockets = new Set<Socket>()
  let asked = 0
  const server = createServer((socket) => {
    sockets.add(socket.on('error', () => {}))
    socket.write(GREETING)
    socket.on('data', (chunk: Buffer) => {
      for (const line of chunk.toString().trim().split('\n')) {
        const { execute, id }: { readonly execute: string, readonly id: number } = JSON.parse(line)
        asked++
        const tell = (event: string): void => { setImmediate(() => { socket.write(`{"event":"${event}","data":{},"timestamp":{"seconds":1,"microseconds":1}}\r\n`) }) }
        const said = execute === 'qmp_capabilities' ? '"return":{}' : answer(execute, tell)
        if (said === undefined) socket.destroy()
        else socket.write(`{${said},"id":${id}}\r\n`)
      }
    })
  })
  await listenUnix(server, folder, QMP_SOCKET)
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
  const over = once(child, 'exit')
  const identity = child.pid === undefined ? undefined : readIdentity(child.pid)
  if (identity === undefined) throw new Error('it has ended')
  const errors: unknown[] = []
  const handle = makeHandle({ driver: 'qemu', process: identity, directory, vmmVersion: '10.0.0', image: { key: 'key', shape: {}, vcpus: 1, memoryBytes: 2 ** 20 }, balloonBytes: undefined })
  const vm = new QemuVm(handle, { status: 'hung', reason: 'not asked yet' }, { heartbeat, imageTimeoutMs: 60_000, commands: createHostCommands(), onError: (error) => errors.push(error) })
  // A VM holds no process; a server has its port for that.
  const held = setInterval(() => {}, 60_000)
  const end = async (): Promise<void> => {
    child.kill('SIGKILL')
    await over
  }
  t.teardown(async () => {
    clearInterval(held)
    vm.release()
    for (const socket of sockets) socket.destroy()
    server.close()
    await end()
  })
  return { vm, asked: () => asked, end, errors }
}

const QUESTIONABLE: ReadonlyArray<readonly [what: string, answer: Answer]> = [
  ['an error', () => '"error":{"class":"x","desc":"no"}'],
  ['a state of a wrong type', () => '"return":{"status":{"toString":null}}'],
  ['no state', () => '"return":[]'],
  ['that it is about to end, each time', () => '"return":{"status":"shutdown"}'],
  ['nothing, and ends the connection each time', () => undefined]
]

for (const [what, answer] of QUESTIONABLE) {
  await t.test(`a QEMU that answers with ${what} counts as hung, so that a server that takes its VM over gets on, and its end is noticed`, async (t) => {
    const { vm, asked, end, errors } = await watched(t, answer)
    await vm.known()
    t.match(vm.state, { status: 'hung' })
    const before = asked()
    await eventually('it is asked on', () => asked() > before)
    await end()
    await vm.wait()
    t.equal(vm.state.status, 'gone')
    t.same(errors, [])
  })
}

await t.test('a QEMU that answers again after it answered nonsense runs again', async (t) => {
  let answered = 0
  const { vm } = await watched(t, () => ++answered < 20 ? '"error":{}' : '"return":{"status":"running"}')
  await eventually('it runs', () => vm.state.status === 'running')
  t.ok(answered >= 20)
})

await t.test('a QEMU that refuses to go on after a full disk is watched on, with that reason', async (t) => {
  const { vm, asked } = await watched(t, (command) => command === 'cont' ? '"error":{"class":"x","desc":"no"}' : '"return":{"status":"io-error"}')
  await eventually('it is asked for longer than it may be silent', () => asked() > 20)
  // A moment without an answer, on a busy host, has another reason.
  t.ok(await eventually('its reason', () => vm.state.status === 'hung' && /a disk of the VM cannot be written/.test(vm.state.reason ?? '')))
})

await t.test('a QEMU whose disk stays full is told to go on once in an interval, and is hung all the while; it runs when it has kept running for one', async (t) => {
  const intervalMs = 50
  let [continued, status, isFull] = [0, 'io-error', true]
  const { vm } = await watched(t, (command, tell) => {
    if (command !== 'cont') return `"return":{"status":"${status}"}`
    continued++
    status = 'running'
    tell('RESUME')
    // Its next write stops it again.
    if (isFull) setTimeout(() => { status = 'io-error'; tell('STOP') }, 5)
    return '"return":{}'
  }, { intervalMs, deadlineMs: 10_000 })
  await eventually('it is hung', () => /a disk of the VM cannot be written/.test(vm.state.reason ?? ''))
  const states: unknown[] = []
  vm.onState((state) => { states.push(state) })
  const [began, before] = [performance.now(), continued]
  await eventually('it was told to go on some times', () => continued >= before + 10)
  t.ok(performance.now() - began >= 8 * intervalMs, `${performance.now() - began} ms for ten times`)
  t.same(states, [])
  isFull = false
  await eventually('it runs', () => vm.state.status === 'running')
  t.same(states, [{ status: 'running' }])
})

await t.test('memory that the guest cannot have is refused', async (t) => {
  const whole = 2 ** 30
  const bytesOf = async (actual: unknown): Promise<number> => await createBalloon(whole, () => ({ version: '', closed: new Promise(() => {}), onEvent: () => () => {}, close () {}, execute: async () => await Promise.resolve({ actual }) })).bytes()
  for (const said of [undefined, '1', -1, 0.5, whole + 1, 1e300]) await t.rejects(bytesOf(said), { code: 'qmp_refused' }, JSON.stringify(said))
  for (const said of [0, whole]) t.equal(await bytesOf(said), said)
})
