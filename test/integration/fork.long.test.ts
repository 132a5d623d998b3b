// A machine that becomes two: the same memory up to a moment, and then each its own.
import t from 'tap'
import { look as lookAt, shell, startCounter, type Seen } from '../helpers/counter.ts'
import { runCommand } from '../helpers/exec.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { follow, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'

const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'fork/busybox:latest')

const source = async (name: string): Promise<string> => await startCounter(server, image, name, 'echo first > /root/file')
const look = async (id: string, above?: number): Promise<Seen & { readonly file: string }> => ({ ...await lookAt(server, id, above), file: (await shell(server, id, 'cat /root/file')).trim() })

t.test('a running machine is forked twice and goes on, and all three are machines of their own', { timeout: 900_000 }, async (t) => {
  const id = await source('fork-source')
  const before = await look(id)
  const forks = []
  for (const name of ['fork-one', 'fork-two']) {
    const fork = await server.sdk.instances.fork(id, { name, from_running: true })
    t.match(fork, { name, state: 'Running' })
    forks.push(fork)
  }
  const after = await look(id, before.counter)
  t.equal(after.nonce, before.nonce)
  t.ok(after.counter > before.counter, 'the source counts on')
  t.equal(after.hostname, 'fork-source')
  t.equal(after.bootId, before.bootId)
  const [one, two] = await Promise.all(forks.map(async fork => await look(fork.id)))
  for (const seen of [one, two]) {
    t.equal(seen?.nonce, before.nonce, 'its memory is that of the source')
    t.ok((seen?.counter ?? 0) > before.counter)
    t.ok((seen?.clockError ?? 2) <= 1, 'its clock is right')
    t.equal(seen?.file, 'first')
    t.not(seen?.bootId, before.bootId)
  }
  t.strictSame([one?.hostname, two?.hostname], ['fork-one', 'fork-two'])
  t.not(one?.random, two?.random)
  t.equal(new Set([after.random, one?.random, two?.random]).size, 3, 'no two have the same randomness')
  await shell(server, forks[0]?.id ?? '', 'echo second > /root/file; sync')
  t.equal((await look(id)).file, 'first', 'their disks are apart')
  await server.sdk.instances.stop(id)
  t.equal((await look(forks[0]?.id ?? '')).file, 'second')
  for (const gone of [id, ...forks.map(fork => fork.id)]) await server.sdk.instances.delete(gone)
})

t.test('a machine in standby is forked to each state, and its image stays', { timeout: 900_000 }, async (t) => {
  const id = await source('fork-standby')
  const before = await look(id)
  await server.sdk.instances.standby(id)
  const running = await server.sdk.instances.fork(id, { name: 'fork-running', target_state: 'Running' })
  const resting = await server.sdk.instances.fork(id, { name: 'fork-resting' })
  const stopped = await server.sdk.instances.fork(id, { name: 'fork-stopped', target_state: 'Stopped' })
  t.strictSame([running.state, resting.state, stopped.state], ['Running', 'Standby', 'Stopped'])
  await server.sdk.instances.delete(id)
  const first = await look(running.id)
  t.equal(first.nonce, before.nonce)
  await server.kill9()
  await server.restart()
  await server.sdk.instances.restore(resting.id)
  const second = await look(resting.id)
  t.equal(second.nonce, before.nonce, 'the image outlives its source and the server')
  t.equal(second.hostname, 'fork-resting')
  t.not(second.random, first.random)
  t.not(second.bootId, first.bootId)
  await server.sdk.instances.start(stopped.id, {})
  await waitFor(server, stopped.id, 'Running')
  await shell(server, stopped.id, 'while [ ! -e /dev/shm/state ]; do sleep 0.1; done')
  t.not((await look(stopped.id)).nonce, before.nonce, 'a stopped fork boots')
  for (const gone of [running.id, resting.id, stopped.id]) await server.sdk.instances.delete(gone)
})

t.test('an open command of the source goes on through a fork', { timeout: 900_000 }, async (t) => {
  const id = await source('fork-session')
  const command = runCommand(server, id, { command: ['/bin/sh', '-c', 'n=0; while [ $n -lt 40 ]; do n=$((n+1)); echo $n; sleep 0.1; done'] })
  const fork = await server.sdk.instances.fork(id, { name: 'fork-beside', from_running: true, target_state: 'Stopped' })
  const { stdout, exitCode } = await command
  t.equal(exitCode, 0)
  t.strictSame(stdout.trim().split('\n').map(Number), Array.from({ length: 40 }, (_, index) => index + 1))
  t.match(await follow(server, fork.id, () => true).catch(() => ['none']), ['none'], 'a stopped fork has said nothing')
  for (const gone of [id, fork.id]) await server.sdk.instances.delete(gone)
})
