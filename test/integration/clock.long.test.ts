// The whole server while the host's clock is set a day ahead and a day back: what lasts for a while lasts as long as it should, and what has a date goes by the date.
// Its machines are those of the fake driver, since what is at issue is the server's own time.
import { spawnSync } from 'node:child_process'
import { rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { createMachine, waitFor } from '../helpers/machine.ts'
import { startTestServer } from '../helpers/server.ts'
import { skipFile } from '../helpers/skip-file.ts'

const HOUR_MS = 3_600_000

t.setTimeout(600_000)
const folder = testFolder(t)
const clockFile = join(folder, 'clock')
/** Sets the clock so many hours beside the real one. */
const setClock = async (hours: number): Promise<void> => {
  await writeFile(`${clockFile}.new`, `${hours < 0 ? '-' : '+'}${Math.abs(hours)}h\n`)
  await rename(`${clockFile}.new`, clockFile)
}
await setClock(0)

/** What the command `faketime` preloads. By itself it also fakes the time that passes, which stays as it is here. */
const { status, stdout } = spawnSync('faketime', ['-m', '-f', '+0h', 'sh', '-c', 'printf %s "$LD_PRELOAD"'], { encoding: 'utf8' })
if (status !== 0) {
  t.plan(0, 'the command faketime is not there')
  process.exit()
}
await skipFile(skipWithout('volumes'))
const server = await startTestServer(t, {
  env: { LD_PRELOAD: stdout, FAKETIME_TIMESTAMP_FILE: clockFile, FAKETIME_NO_CACHE: '1', FAKETIME_DONT_FAKE_MONOTONIC: '1', NO_FAKE_STAT: '1' },
  plugins: {
    'hypervisor-qemu': { enabled: false },
    'hypervisor-fake': { module: fileURLToPath(new URL('../hypervisor-fake/as-qemu.js', import.meta.url)) },
    networking: { enabled: false },
    builds: { enabled: false },
    guest: { config: { prepare: false } },
    snapshots: { config: { scheduleInterval: '200ms' } }
  }
})
const image = await push(server, await busyboxImage(), 'clock/busybox:latest')
const { id } = await createMachine(server, image, { name: 'web' })
await waitFor(server, id, 'Running')

/** The date that the server gives something that it makes now. */
const serverDate = async (): Promise<number> => {
  const volume = await server.sdk.volumes.create({ name: 'dated', size_gb: 1 })
  await server.sdk.volumes.delete(volume.id)
  return Date.parse(volume.created_at)
}

/** Sets the clock, and sees that the server goes by it. */
const jump = async (hours: number): Promise<void> => {
  await setClock(hours)
  await eventually('the server has the new time', async () => Math.abs(await serverDate() - Date.now() - hours * HOUR_MS) < 10 * 60_000)
}

t.test('a create that is sent again happens once, whatever was done to the clock in between', async (t) => {
  const create = async (): Promise<Response> => await fetch(`${server.url}/volumes`, {
    method: 'POST',
    headers: { authorization: `Bearer ${server.key}`, 'content-type': 'application/json', 'idempotency-key': 'once' },
    body: JSON.stringify({ name: 'once', size_gb: 1 })
  })
  t.equal((await create()).status, 201)
  for (const hours of [25, -25, 49, 0]) {
    await jump(hours)
    const again = await create()
    t.match([again.status, again.headers.get('idempotent-replayed')], [201, 'true'], `clock at ${hours} h`)
  }
})

t.test('a token of the registry lives on, and a key ends at its date', async (t) => {
  const { url, key } = server
  const bearer = (token: string): { headers: Record<string, string> } => ({ headers: { authorization: `Bearer ${token}` } })
  const answer: unknown = await (await fetch(`${url}/v2/token?service=berth&scope=repository:clock/busybox:pull`, bearer(key))).json()
  const { token } = Object(answer)
  const made = await createHostCommands().run(process.execPath, [
    fileURLToPath(new URL('../../core/main.js', import.meta.url)), 'token', 'create', '--name', 'dated', '--expires-in', '12h', '--config', join(server.folder, 'berth.yaml')
  ])
  const dated = made.stdout.trim().split(/\s+/).at(-1) ?? ''
  const statuses = async (): Promise<number[]> => [(await fetch(`${url}/v2/`, bearer(token))).status, (await fetch(`${url}/volumes`, bearer(dated))).status]
  t.same(await statuses(), [200, 200])
  await jump(24)
  t.same(await statuses(), [200, 401])
  await jump(-24)
  t.same(await statuses(), [200, 200])
  await jump(0)
})

t.test('a schedule runs on, and nothing that it took is too old at once', { skip: skipWithout('snapshots') }, async (t) => {
  await server.sdk.instances.stop(id)
  const path = `/instances/${id}/snapshot-schedule`
  await server.api.call('PUT', path, { interval: '1h', retention: { max_count: 10, max_age: '2h' } })
  const runs = async (): Promise<number> => (await server.sdk.snapshots.list()).length
  const nextRun = async (): Promise<number> => Date.parse(String(Object(await server.api.call('GET', path))['next_run_at']))
  t.equal(await runs(), 0)
  await jump(24)
  await eventually('a run that is overdue happens once', async () => await runs() === 1)
  await jump(72)
  await eventually('and nothing is removed', async () => await runs() === 2)
  await jump(-24)
  await eventually('the next run is an hour away', async () => await nextRun() <= Date.now() - 23 * HOUR_MS + 6 * 60_000)
  t.equal(await runs(), 2)
})
