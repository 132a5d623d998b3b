// The measuring part of `create-default`, a program in a network namespace of its own: servers with networks, resources and templates as they are by default, and machines of the default shape.
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'
import { boot, remove, startBerth, type Berth } from '../berth.ts'
import { makeGuestImage } from '../guest/image.ts'
import { figureOf, print, series, takeTurns, type Keep, type Series } from '../harness.ts'
import { defaultPlugins, defaultShape, makeUplink, type InsideOptions } from '../own-network.ts'
import { prepareRawBoots, rawBootName } from '../raw-boot.ts'
import { createSteps, type Steps } from '../steps.ts'
import { templatesOff, templatesOn, warmUp, type Warmth } from '../templates.ts'

interface Side {
  readonly title: string
  readonly ratioAtMost: number
  readonly berth: Berth
  readonly warmth: Warmth
  readonly times: Series
  readonly steps: Steps
}

const note = 'the default configuration and shape: a network, resources, 1 GB, 2 vCPUs; the image ready; by hand without a network'

async function main ({ folder, runs, namespace }: InsideOptions): Promise<void> {
  const commands = createHostCommands()
  await makeUplink(commands)
  const image = await makeGuestImage(commands, folder)
  const cold = await startBerth({ folder: join(folder, 'cold'), plugins: templatesOff() }, image)
  // The machine started by hand has no network: its time is that of the machine alone, which is the harder comparison.
  const raw = await prepareRawBoots(cold, { ...defaultShape, network: { enabled: false } }, commands, join(folder, 'raw')).finally(async () => { await cold.server.stop() })
  const byHand = series(rawBootName)
  // One after the other: each expects to be the host's only server with this network.
  for (const { title, ratioAtMost, spares } of [{ title: 'a spare VM ready', ratioAtMost: 0.08, spares: 1 }, { title: 'a template ready, no spare VM', ratioAtMost: 0.20, spares: 0 }]) {
    const berth = await startBerth({ folder: join(folder, `spares-${spares}`), plugins: { ...templatesOn(spares), ...defaultPlugins(namespace) } }, image)
    try {
      const side: Side = { title, ratioAtMost, berth, warmth: await warmUp(berth, defaultShape, spares), times: series(title), steps: createSteps('the guest to its first line, and HTTP') }
      byHand.values.length = 0
      await takeTurns({ runs, sides: [async (run, keep) => { await oneCreate(side, `web-${run}`, keep) }, async (_run, keep) => keep(byHand, await raw.time())] })
      print(figureOf(`POST /instances to Running and the first line of output, by default, ${title}`, 'ms', side.times.values, { other: byHand, ratioAtMost, note }))
      side.steps.print(`create, by default, ${title}`)
    } finally {
      await berth.server.stop()
    }
  }
}

async function oneCreate ({ berth, warmth, times, steps }: Side, name: string, keep: Keep): Promise<void> {
  const began = performance.now()
  const id = await boot(berth, { ...defaultShape, name })
  const elapsedMs = performance.now() - began
  keep(times, elapsedMs)
  await warmth.check(id)
  await steps.note(berth, id, 'create', elapsedMs, keep)
  await remove(berth, id)
  await warmth.ready()
}

await main(JSON.parse(process.argv[2] ?? '') as InsideOptions)
process.exit(0)
