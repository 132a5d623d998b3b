// `npm run bench -- create`: from the request to the program's first line of output, for each way in which an instance is made, against the same machine booted by hand.
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'
import { serverUnder } from '../accelerator.ts'
import { boot, remove, startBerth, type Berth } from '../berth.ts'
import { inFolder } from '../folder.ts'
import { makeGuestImage } from '../guest/image.ts'
import { figureOf, print, series, takeTurns, type Keep, type Series } from '../harness.ts'
import type { ServerOptions } from '../../setup/server/process.ts'
import type { Benchmarks, BenchOptions, Under } from '../options.ts'
import { runInOwnNetwork } from '../own-network.ts'
import { prepareRawBoots, rawBootName, type RawBoots } from '../raw-boot.ts'
import { hasSpares } from '../../test/helpers/hypervisor-names.ts'
import { fetchKernel } from '../../test/helpers/isolated.ts'
import { createSteps, type Steps } from '../steps.ts'
import { templatesOff, templatesOn, warmUp, type Warmth } from '../templates.ts'

const machine = { argv: ['/bin/sh', '-c', 'echo ready; sleep 600'], size: '256MB' }
const note = '256 MB, 1 vCPU, the image ready'

/** One way in which an instance is made, on a server of its own. */
interface Side {
  readonly title: string
  readonly ratioAtMost: number
  readonly berth: Berth
  /** absent if every instance boots */
  readonly warmth?: Warmth
  readonly series: Series
  readonly steps: Steps
}

/** Each way in which an instance is made, with a server for each. */
const WAYS = [
  { name: 'spare', title: 'a spare VM ready', ratioAtMost: 0.20, plugins: templatesOn(), spares: 1 },
  { name: 'clone', title: 'a template ready, no spare VM', ratioAtMost: 0.20, plugins: templatesOn(0), spares: 0 },
  { name: 'cold', title: 'templates off', ratioAtMost: 1.15, plugins: templatesOff(), spares: undefined }
] as const

function waysOf ({ hypervisor }: Under): ReadonlyArray<typeof WAYS[number]> {
  return WAYS.filter(({ name }) => name !== 'spare' || hasSpares(hypervisor))
}

async function createBench ({ runs, before, ...under }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const commands = createHostCommands()
    const image = await makeGuestImage(commands, folder)
    const running: Berth[] = []
    const start = async (name: string, plugins: ReturnType<typeof templatesOn>, build: Pick<ServerOptions, 'program'>): Promise<Berth> => {
      const berth = await startBerth({ folder: join(folder, name), ...serverUnder(under, plugins), signal, ...build }, image)
      running.push(berth)
      return berth
    }
    const sidesOf = async ({ folders, titles }: { readonly folders: string, readonly titles: string }, build: Pick<ServerOptions, 'program'>): Promise<Side[]> => {
      const sides: Side[] = []
      for (const { name, title, ratioAtMost, plugins, spares } of waysOf(under)) {
        const berth = await start(`${folders}${name}`, plugins, build)
        sides.push({ berth, title, ratioAtMost, series: series(`${titles}${title}`), steps: createSteps('the guest to its first line, and HTTP'), ...spares === undefined ? {} : { warmth: await warmUp(berth, machine, spares) } })
      }
      return sides
    }
    try {
      const sides = await sidesOf({ folders: '', titles: '' }, {})
      const earlier = before === undefined ? [] : await sidesOf({ folders: 'before-', titles: 'the other build: ' }, { program: join(before, 'dist/core/main.js') })
      const cold = sides.at(-1)?.berth
      if (cold === undefined) throw new Error('there is no way in which instances come up')
      await measure(sides, earlier, await prepareRawBoots(cold, machine, commands, join(folder, 'raw')), runs)
    } finally {
      await Promise.all(running.map(async ({ server }) => await server.stop()))
    }
  })
}

/** @param earlier the same ways with another build */
async function measure (sides: readonly Side[], earlier: readonly Side[], raw: RawBoots, runs: number): Promise<void> {
  const boots = series(rawBootName)
  await takeTurns({
    runs,
    sides: [
      ...[...sides, ...earlier].map(side => async (run: number, keep: Keep) => await oneCreate(side, `bench-${run}`, keep)),
      async (_run, keep) => keep(boots, await raw.time())
    ]
  })
  for (const { title, ratioAtMost, series: { values }, steps } of sides) {
    print(figureOf(`POST /instances to Running and the first line of output, ${title}`, 'ms', values, { other: boots, ratioAtMost, note }))
    steps.print(`create, ${title}`)
  }
  for (const [index, side] of earlier.entries()) {
    print(figureOf(`POST /instances to Running and the first line of output, ${side.title}, against the other build`, 'ms', sides[index]?.series.values ?? [], { other: side.series, ratioAtMost: 1.05, note }))
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

/** The default configuration and shape. */
async function createDefault ({ runs }: BenchOptions): Promise<void> {
  await fetchKernel()
  await runInOwnNetwork(new URL('inside.js', import.meta.url), runs)
}

export const benchmarks: Benchmarks = { create: createBench, 'create-default': createDefault }
export const accelerated = ['create']
