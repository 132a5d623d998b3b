// The measuring part of `standby-default`, a program in a network namespace of its own: a server with networks, resources and templates as they are by default, and machines of the default shape.
import { join } from 'node:path'
import type { OciImageSource } from '@onkernel/hypeman/lib/push'
import { createHostCommands } from '../../core/process/run.ts'
import { boot, exec, logLines, remove, startBerth, type Berth } from '../berth.ts'
import { makeGuestImage } from '../guest/image.ts'
import { figureOf, print, series, takeTurns, type Keep, type Series } from '../harness.ts'
import { imageOnDisk } from '../image-on-disk.ts'
import { prepareRawBoots, rawBootName, type RawBoots } from '../raw-boot.ts'
import { defaultPlugins, defaultShape as shape, makeUplink, type InsideOptions } from '../own-network.ts'
import { createSteps, type Steps } from '../steps.ts'
import { templatesOff, templatesOn, warmUp, type Warmth } from '../templates.ts'

interface Sides {
  readonly standby: Series
  readonly hot: Series
  readonly cold: Series
  readonly standbySteps: Steps
  readonly hotSteps: Steps
}

async function main ({ folder, runs, namespace }: InsideOptions): Promise<void> {
  const commands = createHostCommands()
  await makeUplink(commands)
  const plugins = { ...templatesOn(), ...defaultPlugins(namespace) }
  const image = await makeGuestImage(commands, folder)
  const raw = await prepareRaw(folder, image)
  const berth = await startBerth({ folder: join(folder, 'server'), plugins }, image)
  try {
    const sides: Sides = { standby: series('standby'), hot: series('restore, hot'), cold: series('restore, cold'), standbySteps: createSteps('HTTP and storing'), hotSteps: createSteps('HTTP and exec') }
    const byHand = series(rawBootName)
    const warmth = await warmUp(berth, shape)
    await takeTurns({ runs, sides: [async (run, keep) => await sleepAndWake(berth, warmth, `web-${run}`, keep, sides), async (_run, keep) => keep(byHand, await raw.time())] })
    report(sides, byHand)
  } finally {
    await berth.server.stop()
  }
}

/** The machine started by hand has no network: its time is that of the machine alone, which is the harder comparison. */
async function prepareRaw (folder: string, image: OciImageSource): Promise<RawBoots> {
  const cold = await startBerth({ folder: join(folder, 'cold'), plugins: templatesOff() }, image)
  try {
    return await prepareRawBoots(cold, { ...shape, network: { enabled: false } }, createHostCommands(), join(folder, 'raw'))
  } finally {
    await cold.server.stop()
  }
}

/** Takes one machine through a standby and a hot restore, and then through another standby and a cold restore. */
async function sleepAndWake (berth: Berth, warmth: Warmth, name: string, keep: Keep, sides: Sides): Promise<void> {
  const id = await boot(berth, { ...shape, name })
  await warmth.check(id)
  await warmth.ready()
  const asleepMs = await timed(async () => { await berth.api.call('POST', `/instances/${id}/standby`) })
  keep(sides.standby, asleepMs)
  await sides.standbySteps.note(berth, id, 'standby', asleepMs, keep)
  await imageOnDisk(berth, id)
  const hotMs = await timed(async () => { await restoreAndExec(berth, id) })
  keep(sides.hot, hotMs)
  await check(berth, id, true)
  await sides.hotSteps.note(berth, id, 'restore', hotMs, keep)
  await berth.api.call('POST', `/instances/${id}/standby`)
  await imageOnDisk(berth, id)
  // A PATCH ends the VM that is kept.
  await berth.api.call('PATCH', `/instances/${id}`, { ttl: '1h' })
  const before = (await restoreLines(berth, id)).length
  const coldMs = await timed(async () => { await restoreAndExec(berth, id) })
  keep(sides.cold, coldMs)
  if ((await restoreLines(berth, id)).length !== before + 1) throw new Error('the log of operations does not tell of the second restore')
  await check(berth, id, false)
  await remove(berth, id)
  await warmth.ready()
}

async function restoreAndExec (berth: Berth, id: string): Promise<void> {
  await berth.api.call('POST', `/instances/${id}/restore`)
  await exec(berth, id, ['/bin/true'])
}

const restoreLines = async (berth: Berth, id: string): Promise<string[]> => (await logLines(berth, id, 'berth')).filter((line) => /restore: .*VM runs/.test(line))

async function check (berth: Berth, id: string, isHot: boolean): Promise<void> {
  const last = (await restoreLines(berth, id)).at(-1) ?? ''
  if (last.includes('kept VM') !== isHot) throw new Error(`the restore was not ${isHot ? 'hot' : 'cold'}: ${last}`)
}

async function timed (work: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

function report ({ standby, hot, cold, standbySteps, hotSteps }: Sides, raw: Series): void {
  const note = 'the default configuration and shape: a network, resources, 1 GB, 2 vCPUs; by hand without a network'
  print(figureOf('POST standby to its answer, by default', 'ms', standby.values, { other: raw, ratioAtMost: 0.05, note }))
  standbySteps.print('standby, by default')
  print(figureOf('POST restore to an answer of exec, by default, hot', 'ms', hot.values, { other: raw, ratioAtMost: 0.05, note: `${note}; the VM is kept, the image on the disk` }))
  hotSteps.print('restore, by default, hot')
  print(figureOf('POST restore to an answer of exec, by default, cold', 'ms', cold.values, { other: raw, ratioAtMost: 0.12, note: `${note}; no VM is kept, the image is on the disk` }))
}

await main(JSON.parse(process.argv[2] ?? '') as InsideOptions)
process.exit(0)
