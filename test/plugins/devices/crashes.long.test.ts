// The server dies before any of its writes to the host's kernel, or between two other steps: the next one gives every device back that is nobody's, and leaves the others.
import t, { type Test } from 'tap'
import { copyOfData, crashAt } from '../instances/crash.ts'
import type { FakeDevice, FakeHost } from './fixture.ts'
import { startWithDevices, type DevicesApp } from './app.ts'
import type { ImagingStep } from '../instances/scripted.ts'

const GPU = '0000:01:00.0'
const SOUND = '0000:01:00.1'
const DEVICES: readonly FakeDevice[] = [
  { address: GPU, ids: '10de:2235', class: '030200', group: 1, driver: 'nvidia' },
  { address: SOUND, ids: '10de:1aef', class: '040300', group: 1, driver: 'snd_hda_intel' },
  { address: '0000:82:00.4', ids: '10de:2236', class: '030200', group: 12, driver: 'nvidia', mdevs: { 'nvidia-556': { name: 'NVIDIA A40-2Q', count: 1 } } }
]
const FIELDS = { devices: ['gpu'], gpu: { profile: 'A40-2Q' } }

async function start (t: Test): Promise<DevicesApp> {
  const app = await startWithDevices(t, DEVICES)
  await app.register(GPU, 'gpu')
  return app
}

/** Runs `call` up to its write number `n`, and starts another server on what is there at that moment. Undefined when there are fewer. */
async function crashBeforeWrite (t: Test, app: DevicesApp, n: number, call: () => Promise<unknown>): Promise<{ readonly after: DevicesApp, readonly step: string } | undefined> {
  const { devices, host, dataDir } = app
  let go = (): void => {}
  const held = new Promise<void>((resolve) => { go = resolve })
  let count = 0
  const reached = new Promise<string>((resolve) => {
    devices.onWrite = async (path, text) => {
      if (count++ !== n) return
      devices.onWrite = undefined
      resolve(`before ${JSON.stringify(text)} to ${path.replace(/[\da-f-]{36}/, 'uuid')}`)
      await held
      throw new Error('the server was killed here')
    }
  })
  const cut = call()
  const step = await Promise.race([reached, cut.then(() => undefined)])
  if (step === undefined) return undefined
  const data = await copyOfData(t, dataDir)
  const after = await startWithDevices(t, devices, { host, dataDir: data })
  t.teardown(async () => {
    go()
    await cut
  })
  return { after, step }
}

async function facts ({ devices }: { readonly devices: FakeHost }): Promise<readonly unknown[]> {
  return [await devices.driver(GPU), await devices.driver(SOUND), (await devices.mdevs()).length]
}
const FREE = ['nvidia', 'snd_hda_intel', 0]

t.setTimeout(400_000)

for (const operation of ['create', 'delete'] as const) {
  t.test(`a ${operation} that is cut off at any write to the kernel leaves no device taken`, { timeout: 200_000 }, async (t) => {
    const steps: string[] = []
    for (let n = 0; ; n++) {
      const app = await start(t)
      if (operation === 'delete') {
        await app.make('web', FIELDS)
        await app.waitFor('web', 'Running')
      }
      const crash = await crashBeforeWrite(t, app, n, async () => operation === 'create' ? await app.call('POST', '/instances', { name: 'web', image: 'test', ...FIELDS }) : await app.call('DELETE', '/instances/web'))
      if (crash === undefined) break
      const { after, step } = crash
      steps.push(step)
      t.same(JSON.parse((await after.call('GET', '/instances')).text), [], step)
      t.same(await facts(after), FREE, step)
      t.match(await after.device('gpu'), { attached_to: null, bound_to_vfio: false }, step)
      t.equal((await after.call('POST', '/instances', { name: 'next', image: 'test', ...FIELDS })).status, 201, step)
      await after.call('DELETE', '/instances/next')
      await after.app.stop()
    }
    t.equal(steps.length, 7, steps.join('; '))
  })
}

for (const step of ['launch', 'launched'] as const satisfies readonly ImagingStep[]) {
  t.test(`a server that is killed at ${step} gives the devices back when it starts again`, async (t) => {
    const app = await start(t)
    const after = await crashAt<DevicesApp>(t, app, step, async () => await app.call('POST', '/instances', { name: 'web', image: 'test', ...FIELDS }), async (test, options) => await startWithDevices(test, app.devices, options))
    t.same(await facts(after), FREE)
    t.match(await after.device('gpu'), { attached_to: null })
  })
}

t.test('a restart of the server leaves the devices of its instances alone', async (t) => {
  const app = await start(t)
  const { dataDir, devices, host } = app
  const id = await app.make('web', FIELDS)
  await app.waitFor('web', 'Running')
  let writes = 0
  devices.onWrite = () => { writes++ }
  await app.app.stop()
  const after = await startWithDevices(t, devices, { dataDir, host })
  t.match(await after.device('gpu'), { attached_to: id, bound_to_vfio: true })
  t.match(await after.call('GET', '/instances/web'), { body: { state: 'Running' } })
  t.equal(writes, 0)
  devices.onWrite = undefined
  await after.call('DELETE', '/instances/web')
  t.same(await facts(after), FREE)
})
