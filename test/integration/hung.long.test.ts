// A VMM that hangs is seen as such, soon, and disturbs nobody else.
import t from 'tap'
import { multiplyInstance } from '../../bench/api/stored-instances.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createShell, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'
import { vmmOf } from '../helpers/vmm.ts'

const server = await startTestServer(t, { plugins: { 'hypervisor-qemu': { config: { heartbeatDeadline: '1s' } } } })
const image = await push(server, await busyboxImage(), 'hung/busybox:latest')

const STORED = 48

/** The median time of some lists, in `ms`. */
async function listTime (): Promise<number> {
  const times: number[] = []
  for (let run = 0; run < 9; run++) {
    const started = performance.now()
    await server.sdk.instances.list()
    times.push(performance.now() - started)
  }
  return times.sort((a, b) => a - b)[4] ?? Infinity
}

t.test('a stopped VMM process is Unknown within two seconds, delays no list of 50 instances, and is Running again when it goes on', { timeout: 900_000 }, async (t) => {
  const stored = await createShell(server, image, 'true')
  await waitFor(server, stored.id, 'Stopped')
  await server.stop()
  await multiplyInstance(server.dataDir, stored.id, STORED)
  await server.restart()
  const instance = await createShell(server, image, 'while true; do sleep 1; done')
  const neighbour = await createShell(server, image, 'while true; do sleep 1; done')
  for (const { id } of [instance, neighbour]) await waitFor(server, id, 'Running')
  t.equal((await server.sdk.instances.list()).length, 50)
  const calm = await listTime()
  const pid = await vmmOf(server, instance.id)

  const hungAt = Date.now()
  process.kill(pid, 'SIGSTOP')
  const hung = await waitFor(server, instance.id, 'Unknown')
  t.ok(Date.now() - hungAt < 2000, `it took ${Date.now() - hungAt} ms`)
  t.ok((hung.state_error ?? '') !== '', `it says why: ${hung.state_error ?? ''}`)
  t.equal((await server.sdk.instances.get(neighbour.id)).state, 'Running')
  const disturbed = await listTime()
  t.ok(disturbed < calm + 100, `a list takes ${disturbed.toFixed(1)} ms instead of ${calm.toFixed(1)} ms`)

  process.kill(pid, 'SIGCONT')
  // Not by a wait, which rightly ends at once for as long as the state is still Unknown.
  const goesOnAt = Date.now()
  let back = await server.sdk.instances.get(instance.id)
  while (back.state !== 'Running' && Date.now() - goesOnAt < 2000) back = await server.sdk.instances.get(instance.id)
  t.equal(back.state, 'Running', 'it is back within two seconds')
  t.notOk(back.state_error, 'nothing is wrong any more')
  for (const { id } of [instance, neighbour]) await server.sdk.instances.delete(id)
})

t.test('a VMM process that is killed leaves a stopped instance that says so', async (t) => {
  const instance = await createShell(server, image, 'sleep 600')
  await waitFor(server, instance.id, 'Running')
  process.kill(await vmmOf(server, instance.id), 'SIGKILL')
  const stopped = await waitFor(server, instance.id, 'Stopped')
  t.equal(stopped.exit_code, null)
  await server.sdk.instances.delete(instance.id)
})

t.test('an instance whose VMM hangs can be deleted', async (t) => {
  const instance = await createShell(server, image, 'sleep 600')
  await waitFor(server, instance.id, 'Running')
  const pid = await vmmOf(server, instance.id)
  process.kill(pid, 'SIGSTOP')
  await server.sdk.instances.delete(instance.id)
  t.throws(() => process.kill(pid, 0), { code: 'ESRCH' }, 'its VMM is gone')
})
