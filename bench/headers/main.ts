// `npm run bench -- headers`: what the kernel's modules and headers cost when an instance is made, in each way, against one without them.
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'
import { boot, remove, startBerth, type Berth } from '../berth.ts'
import { inFolder } from '../folder.ts'
import { makeGuestImage } from '../guest/image.ts'
import { figureOf, print, series, takeTurns, type Keep, type Series } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { templatesOff, templatesOn, warmUp, type Warmth } from '../templates.ts'

const machine = { argv: ['/bin/sh', '-c', 'echo ready; sleep 600'], size: '256MB' }
const note = '256 MB, 1 vCPU, the image ready'

const WAYS = [
  { name: 'a spare VM ready', spares: 1 },
  { name: 'a template ready, no spare VM', spares: 0 },
  { name: 'templates off', spares: undefined }
]

/** One way in which an instance is made, with the headers or without. Each has a server of its own, which has templates of one kind only. */
interface Side {
  readonly berth: Berth
  readonly skipKernelHeaders: boolean
  /** absent if every instance boots */
  readonly warmth?: Warmth
  readonly series: Series
}

async function headersBench ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const image = await makeGuestImage(createHostCommands(), folder)
    const begin = async (skipKernelHeaders: boolean, title: string, spares: number | undefined): Promise<Side> => {
      const name = `${skipKernelHeaders ? 'without' : 'with'} headers, ${title}`
      const berth = await startBerth({ folder: join(folder, name.replaceAll(/\W+/g, '-')), plugins: spares === undefined ? templatesOff() : templatesOn(spares), signal }, image)
      const side = { berth, skipKernelHeaders, series: series(name) }
      return spares === undefined ? side : { ...side, warmth: await warmUp(berth, { ...machine, skipKernelHeaders }, spares) }
    }
    // One pair after the other: six servers with their spare VMs would disturb one another.
    for (const { name, spares } of WAYS) {
      const sides: Side[] = []
      try {
        for (const skipKernelHeaders of [false, true]) sides.push(await begin(skipKernelHeaders, name, spares))
        await takeTurns({ runs, sides: sides.map(side => async (run: number, keep: Keep) => await oneCreate(side, `bench-${run}`, keep)) })
        const [having, lacking] = sides
        if (having !== undefined && lacking !== undefined) {
          print(figureOf(`POST /instances to Running and the first line of output, ${having.series.name}`, 'ms', having.series.values, { other: lacking.series, note }))
        }
      } finally {
        await Promise.all(sides.map(async ({ berth }) => await berth.server.stop()))
      }
    }
  })
}

async function oneCreate ({ berth, skipKernelHeaders, warmth, series: times }: Side, name: string, keep: Keep): Promise<void> {
  const began = performance.now()
  const id = await boot(berth, { ...machine, name, skipKernelHeaders })
  keep(times, performance.now() - began)
  await warmth?.check(id)
  await remove(berth, id)
  await warmth?.ready()
}

export const benchmarks: Benchmarks = { headers: headersBench }
