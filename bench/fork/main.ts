// `npm run bench -- fork`: a fork of a running machine against a cold boot, how long the source stands still meanwhile, and many forks of one snapshot at once.
import { join } from 'node:path'
import { readFile } from 'node:fs/promises'
import { pathsOf } from '../../plugins/instances/folder/paths.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { isEmulatedHost } from '../../test/emulated-host/slow.ts'
import { boot, exec, field, idOf, remove, running, startBerth, type Berth } from '../berth.ts'
import { inFolder } from '../folder.ts'
import { guestProgram, makeGuestImage } from '../guest/image.ts'
import { figureOf, print, series, takeTurns } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { endOf } from '../output-file.ts'
import { prepareRawBoots, rawBootName, type RawBoots } from '../raw-boot.ts'
import { createSteps, lastStep } from '../steps.ts'
import { templatesOn, untilSpare, warmUp } from '../templates.ts'
import { manyForks } from './many.ts'
import { withWarmAndCold } from '../warm-and-cold.ts'

const idle = { argv: ['/bin/sh', '-c', 'echo ready; sleep 6000'], size: '256MB' }
const ticking = { argv: [guestProgram, 'ticks'], size: '256MB' }
/** a file on the machine's disk */
const fresh = '/root/fresh'
/** `templates.maxSpares` where the configuration says nothing */
const defaultMaxSpares = 8
/** the program reports no shorter pause */
const shortestGapMs = 5

/** The part of `fork` on many forks at once, beside the server of another commit. */
async function burst ({ runs, before }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const image = await makeGuestImage(createHostCommands(), folder)
    const start = async (name: string, program?: string): Promise<Berth> => await startBerth({ folder: join(folder, name), plugins: templatesOn(), signal, ...program === undefined ? {} : { program } }, image)
    const ours = await start('ours')
    const other = before === undefined ? undefined : await start('other', join(before, 'dist/core/main.js'))
    try {
      await manyForks(ours, { runs, keeps: `, of which ${defaultMaxSpares} are kept ready, the most by default`, ready: async () => { await untilSpare(ours, defaultMaxSpares) }, ...other === undefined ? {} : { before: other } })
    } finally {
      await Promise.all([ours.server.stop(), other?.server.stop()])
    }
  })
}

async function forkBench ({ runs, ...under }: BenchOptions): Promise<void> {
  await withWarmAndCold(async ({ warm, cold, commands, folder }) => {
    const raw = await prepareRawBoots(cold, idle, commands, join(folder, 'raw'))
    await warmUp(warm, idle, 0)
    await againstBoot(warm, raw, runs)
    // These are compared with nothing that a slow host makes slow as well.
    if (isEmulatedHost) return
    await pausesOfSource(warm, runs)
    await manyForks(warm, { runs })
  }, under)
}

/** The pause of the source alone: without the other parts of `fork`, a few runs do not take minutes. */
async function pauseBench ({ runs }: BenchOptions): Promise<void> {
  await withWarmAndCold(async ({ warm }) => {
    await warmUp(warm, idle, 0)
    await pausesOfSource(warm, runs)
  })
}

async function pausesOfSource (berth: Berth, runs: number): Promise<void> {
  await pauseOfSource(berth, runs, 0)
  await pauseOfSource(berth, runs, 100 * 2 ** 20)
}

async function againstBoot (berth: Berth, raw: RawBoots, runs: number): Promise<void> {
  const source = await boot(berth, { ...idle, name: 'source' })
  const forks = series('fork')
  const boots = series(rawBootName)
  const steps = createSteps('HTTP')
  await takeTurns({
    runs,
    sides: [
      async (run, keep) => {
        const began = performance.now()
        const id = await forkOf(berth, source, `fork-${run}`)
        const elapsedMs = performance.now() - began
        keep(forks, elapsedMs)
        await steps.note(berth, id, 'fork', elapsedMs, keep)
        await exec(berth, id, ['/bin/true'])
        await remove(berth, id)
      },
      async (_run, keep) => keep(boots, await raw.time())
    ]
  })
  await remove(berth, source)
  print(figureOf('POST fork of a running machine to Running', 'ms', forks.values, { other: boots, ratioAtMost: 0.30, note: '256 MB, 1 vCPU' }))
  steps.print('fork')
}

/** Resolves to the fork's id once it is Running. */
async function forkOf (berth: Berth, source: string, name: string): Promise<string> {
  const answer = await berth.api.call('POST', `/instances/${source}/fork`, { name, from_running: true, target_state: 'Running' })
  const id = idOf(answer)
  if (field(answer, 'state') !== 'Running') await running(berth, id)
  return id
}

/**
 * The pause as the source's own program sees it. The guest's wall clock is put right before the program goes on, so that the jump between two looks
 * at it is the time for which the program stood still; the monotonic clock leaves out the part in which the VM was paused.
 */
async function pauseOfSource (berth: Berth, runs: number, freshBytes: number): Promise<void> {
  const source = await boot(berth, { ...ticking, name: 'ticking' })
  const { output } = pathsOf(berth.server.dataDir, source)
  const wall = series('pause by the wall clock')
  const monotonic = series('pause by the monotonic clock')
  const byHost = series('pause by the clock of the host, from the first word to the guest to its last')
  const undisturbed = series('longest gap without a fork')
  await takeTurns({
    runs,
    sides: [
      async (run, keep) => {
        if (freshBytes > 0) await exec(berth, source, ['/bin/sh', '-c', `rm -f ${fresh}; exec ${guestProgram} fill ${fresh} ${freshBytes}`])
        const offset = await endOf(output)
        const began = performance.now()
        const fork = await forkOf(berth, source, `beside-${run}`)
        const tookMs = performance.now() - began
        await exec(berth, source, ['/bin/true'])
        const gaps = await gapsSince(output, offset)
        keep(wall, Math.max(shortestGapMs, ...gaps.map(gap => gap.wallMs)))
        keep(monotonic, Math.max(shortestGapMs, ...gaps.map(gap => gap.monotonicMs)))
        keep(byHost, await lastStep(berth, source, 'fork', 'asleep'))
        await remove(berth, fork)
        const quiet = await endOf(output)
        await exec(berth, source, ['/bin/usleep', String(Math.round(tookMs * 1000))])
        keep(undisturbed, Math.max(shortestGapMs, ...(await gapsSince(output, quiet)).map(gap => gap.wallMs)))
      }
    ]
  })
  await remove(berth, source)
  const note = `a program in the source looks at its clocks every millisecond and tells of gaps above ${shortestGapMs} ms`
  if (freshBytes > 0) return print(figureOf('pause of a running source with 100 MB freshly written to its disk, by the wall clock', 'ms', wall.values, { other: byHost, note: `${note}; a file was written just before, and not flushed` }))
  print(figureOf('pause of a running source, seen from inside by the wall clock', 'ms', wall.values, { other: byHost, note }))
  print(figureOf('longest gap in the source in as much time without a fork', 'ms', undisturbed.values, { note }))
  print(figureOf('the part of it in which the guest itself ran', 'ms', monotonic.values, { note: 'freezing and waking; by the monotonic clock, which stands still while the VM does' }))
}

async function gapsSince (path: string, offset: number): Promise<Array<{ readonly wallMs: number, readonly monotonicMs: number }>> {
  const text = (await readFile(path)).subarray(offset).toString()
  return [...text.matchAll(/^gap (\d+) (\d+)$/gm)].map(([, wall, monotonic]) => ({ wallMs: Number(wall) / 1000, monotonicMs: Number(monotonic) / 1000 }))
}

export const benchmarks: Benchmarks = { fork: forkBench, 'fork-burst': burst, pause: pauseBench }
export const accelerated = ['fork']
