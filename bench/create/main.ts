// `npm run bench -- create`: from the request to the program's first line of output, in each way that an instance can come up, against the same machine booted by hand.
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'
import { boot, remove, startBerth, type Berth } from '../berth.ts'
import { inFolder } from '../folder.ts'
import { makeGuestImage } from '../guest/image.ts'
import { figureOf, print, series, takeTurns, type Keep, type Series } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { prepareRawBoots, rawBootName, type RawBoots } from '../raw-boot.ts'
import { createSteps, type Steps } from '../steps.ts'
import { templatesOff, templatesOn, warmUp, type Warmth } from '../templates.ts'

const machine = { argv: ['/bin/sh', '-c', 'echo ready; sleep 600'], size: '256MB' }
const note = '256 MB, 1 vCPU, the image ready'

/** One way in which an instance comes up, on a server of its own. */
interface Side {
  readonly title: string
  readonly ratioAtMost: number
  readonly berth: Berth
  /** absent where every instance boots */
  readonly warmth?: Warmth
  readonly series: Series
  readonly steps: Steps
}

async function createBench ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const commands = createHostCommands()
    const image = await makeGuestImage(commands, folder)
    const start = async (name: string, plugins: ReturnType<typeof templatesOn>): Promise<Berth> => await startBerth({ folder: join(folder, name), plugins, signal }, image)
    const spare = await start('spare', templatesOn())
    const clone = await start('clone', templatesOn(0))
    const cold = await start('cold', templatesOff())
    const side = (berth: Berth, title: string, ratioAtMost: number, warmth?: Warmth): Side => ({ berth, title, ratioAtMost, warmth, series: series(title), steps: createSteps('the guest to its first line, and HTTP') })
    try {
      const raw = await prepareRawBoots(cold, machine, commands, join(folder, 'raw'))
      await measure([
        side(spare, 'a spare VM ready', 0.20, await warmUp(spare, machine)),
        side(clone, 'a template ready, no spare VM', 0.20, await warmUp(clone, machine, 0)),
        side(cold, 'templates off', 1.15)
      ], raw, runs)
    } finally {
      await Promise.all([spare, clone, cold].map(async ({ server }) => await server.stop()))
    }
  })
}

async function measure (sides: readonly Side[], raw: RawBoots, runs: number): Promise<void> {
  const boots = series(rawBootName)
  await takeTurns({
    runs,
    sides: [
      ...sides.map(side => async (run: number, keep: Keep) => await oneCreate(side, `bench-${run}`, keep)),
      async (_run, keep) => keep(boots, await raw.time())
    ]
  })
  for (const { title, ratioAtMost, series: { values }, steps } of sides) {
    print(figureOf(`POST /instances to Running and the first line of output, ${title}`, 'ms', values, { other: boots, ratioAtMost, note }))
    steps.print(`create, ${title}`)
  }
}

async function oneCreate ({ berth, warmth, series: times, steps }: Side, name: string, keep: Keep): Promise<void> {
  const began = performance.now()
  const id = await boot(berth, { ...machine, name })
  const elapsedMs = performance.now() - began
  keep(times, elapsedMs)
  await warmth?.check(id)
  await steps.note(berth, id, 'create', elapsedMs, keep)
  await remove(berth, id)
  await warmth?.ready()
}

export const benchmarks: Benchmarks = { create: createBench }
