// `npm run bench -- standby`, `standby-default` and `first-standby`: from the request to standby to its answer, and from the request to restore to an answer of exec, each against a cold boot of the same machine.
import { join } from 'node:path'
import type { OciImageSource } from '@onkernel/hypeman/lib/push'
import { createHostCommands } from '../../core/process/run.ts'
import { isEmulatedHost } from '../../test/emulated-host/slow.ts'
import { serverUnder } from '../accelerator.ts'
import { boot, exec, remove, startBerth, type Berth } from '../berth.ts'
import { inFolder } from '../folder.ts'
import { guestProgram, makeGuestImage } from '../guest/image.ts'
import { figureOf, print, quantile, series, takeTurns, type Keep, type Series } from '../harness.ts'
import { touchHostMemory } from '../host-memory.ts'
import { imageOnDisk } from '../image-on-disk.ts'
import type { Benchmarks, BenchOptions, Under } from '../options.ts'
import { runInOwnNetwork } from '../own-network.ts'
import { prepareRawBoots, rawBootName, type RawBoots } from '../raw-boot.ts'
import { createSteps, type Steps } from '../steps.ts'
import { hasSpares } from '../../test/helpers/hypervisor-names.ts'
import { fetchKernel } from '../../test/helpers/isolated.ts'
import { templatesOff, templatesOn, warmUp, withoutKept, type Warmth } from '../templates.ts'

interface Shape {
  readonly label: string
  readonly size: string
  /** how much memory the guest has filled before */
  readonly touchedBytes: number
  /** the largest wanted ratio of the first standby after a cold boot */
  readonly firstAtMost: number
}

interface Sides {
  readonly standby: Series
  readonly restore: Series
  readonly raw: Series
  readonly first: Series
  /** times of `GET /health` meanwhile */
  readonly health: Series
  readonly standbySteps: Steps
  readonly restoreSteps: Steps
}

const shapes: readonly Shape[] = [
  { label: '256 MB', size: '256MB', touchedBytes: 0, firstAtMost: 0.15 },
  { label: '4 GB with 1 GB touched', size: '4GB', touchedBytes: 2 ** 30, firstAtMost: 0.5 }
]
const argv = ['/bin/sh', '-c', 'echo ready; sleep 600']
/** what a guest has touched by itself, and more */
const BOOTED_BYTES = 2 ** 28
const filled = '/dev/shm/filled'

async function standby ({ runs, ...under }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const image = await makeGuestImage(createHostCommands(), folder)
    const restores: Series[] = []
    for (const shape of shapes.filter(({ touchedBytes }) => touchedBytes === 0 || !isEmulatedHost)) restores.push(await ofShape(shape, { folder: join(folder, shape.size), image, runs, under, signal }))
    const [small, large] = restores
    if (small === undefined || large === undefined) return
    print(figureOf('restore: the larger machine against the smaller', 'ms', large.values, { other: small, ratioAtMost: 1.3, note: 'medians of the figures above' }))
  })
}

interface ShapeOptions { readonly folder: string, readonly image: OciImageSource, readonly runs: number, readonly under: Under, readonly signal: AbortSignal }

/** Resolves to the times of the restores. */
async function ofShape (shape: Shape, { folder, image, runs, under, signal }: ShapeOptions): Promise<Series> {
  const running: Berth[] = []
  const start = async (name: string, plugins: ReturnType<typeof templatesOn>): Promise<Berth> => {
    const berth = await startBerth({ folder: join(folder, name), ...serverUnder(under, withoutKept(plugins)), signal }, image)
    running.push(berth)
    return berth
  }
  try {
    const machine = { argv, size: shape.size }
    const spares = hasSpares(under.hypervisor) ? 1 : 0
    const warm = await start('warm', templatesOn(spares))
    // First, as the other server is then told that VMs can be saved, and does not find it out in its first standby.
    const warmth = await warmUp(warm, machine, spares)
    const cold = await start('cold', templatesOff())
    const raw = await prepareRawBoots(cold, machine, createHostCommands(), join(folder, 'raw'))
    const sides = await measure({ warm, warmth, cold, raw }, shape, runs)
    report(shape, sides, warmth)
    return sides.restore
  } finally {
    await Promise.all(running.map(async ({ server }) => await server.stop()))
  }
}

interface Machines { readonly warm: Berth, readonly warmth: Warmth, readonly cold: Berth, readonly raw: RawBoots }

async function measure ({ warm, warmth, cold, raw }: Machines, shape: Shape, runs: number): Promise<Sides> {
  const sides: Sides = {
    standby: series(`standby, ${shape.label}`),
    restore: series(`restore, ${shape.label}`),
    raw: series(rawBootName),
    first: series(`first standby after a cold boot, ${shape.label}`),
    health: series('p99 of GET /health meanwhile'),
    standbySteps: createSteps('HTTP and storing'),
    restoreSteps: createSteps('HTTP and exec')
  }
  await takeTurns({
    runs,
    sides: [
      async (run, keep) => {
        await sleepAndWake(warm, warmth, shape, `warm-${run}`, keep, sides)
        await warmth.ready()
      },
      async (_run, keep) => keep(sides.raw, await raw.time())
    ]
  })
  await firstStandbys(cold, shape, runs, sides)
  return sides
}

async function firstStandbys (cold: Berth, shape: Shape, runs: number, { first, health }: Pick<Sides, 'first' | 'health'>): Promise<void> {
  const answers: number[] = []
  await takeTurns({ runs, warmUps: 0, sides: [async (run, keep) => { answers.push(...await sleepAfterBoot(cold, shape, `cold-${run}`, keep, first)) }] })
  if (answers.length > 0) health.values.push(quantile(answers.toSorted((a, b) => a - b), 0.99))
}

/** Takes one machine through standby and restore; its memory must be the same afterwards. */
async function sleepAndWake (berth: Berth, warmth: Warmth, shape: Shape, name: string, keep: Keep, sides: Sides): Promise<void> {
  const id = await boot(berth, { name, argv, size: shape.size })
  await warmth.check(id)
  await warmth.ready()
  await fill(berth, id, shape)
  const began = performance.now()
  await berth.api.call('POST', `/instances/${id}/standby`)
  const asleepMs = performance.now() - began
  keep(sides.standby, asleepMs)
  await imageOnDisk(berth, id)
  const woken = performance.now()
  await berth.api.call('POST', `/instances/${id}/restore`)
  await exec(berth, id, ['/bin/true'])
  const awakeMs = performance.now() - woken
  keep(sides.restore, awakeMs)
  await check(berth, id, shape)
  await sides.standbySteps.note(berth, id, 'standby', asleepMs, keep)
  await sides.restoreSteps.note(berth, id, 'restore', awakeMs, keep)
  await remove(berth, id)
}

/** Resolves to the times that `GET /health` took meanwhile. */
async function sleepAfterBoot (berth: Berth, shape: Shape, name: string, keep: Keep, asleep: Series): Promise<readonly number[]> {
  const id = await boot(berth, { name, argv, size: shape.size })
  await fill(berth, id, shape)
  // What the page cache takes for the image. Without this, most of the time is that of the host below this one.
  await touchHostMemory(shape.touchedBytes * 1.5 + BOOTED_BYTES, berth.server.folder)
  const began = performance.now()
  let over = false
  // On one processor the questions would take half of it.
  const asked = isEmulatedHost ? [] : untilOver(berth, () => over)
  await berth.api.call('POST', `/instances/${id}/standby`)
  keep(asleep, performance.now() - began)
  over = true
  await remove(berth, id)
  return await asked
}

async function untilOver (berth: Berth, isOver: () => boolean): Promise<number[]> {
  const took: number[] = []
  while (!isOver()) {
    const began = performance.now()
    await berth.api.call('GET', '/health')
    took.push(performance.now() - began)
  }
  return took
}

async function fill (berth: Berth, id: string, { touchedBytes }: Shape): Promise<void> {
  if (touchedBytes > 0) await exec(berth, id, [guestProgram, 'fill', filled, String(touchedBytes)])
}

async function check (berth: Berth, id: string, { touchedBytes }: Shape): Promise<void> {
  if (touchedBytes > 0) await exec(berth, id, [guestProgram, 'check', filled, String(touchedBytes)])
}

function report (shape: Shape, { standby: asleep, restore: awake, raw, first, health, standbySteps, restoreSteps }: Sides, { way }: Warmth): void {
  const { label } = shape
  print(figureOf(`POST standby to its answer, ${label}`, 'ms', asleep.values, { other: raw, ratioAtMost: 0.10, note: `the first standby of a machine made ${way}` }))
  standbySteps.print(`standby, ${label}`)
  print(figureOf(`POST restore to an answer of exec, ${label}`, 'ms', awake.values, { other: raw, ratioAtMost: 0.15, note: 'the image is on the disk; afterwards the guest finds its memory unchanged' }))
  restoreSteps.print(`restore, ${label}`)
  reportFirst(shape, { raw, first, health })
}

function reportFirst ({ label, firstAtMost }: Shape, { raw, first, health }: Pick<Sides, 'raw' | 'first' | 'health'>): void {
  print(figureOf(`POST standby to its answer, ${label}, the first after a cold boot`, 'ms', first.values, { other: raw, ratioAtMost: firstAtMost, note: 'writes the memory out; the cold boots were measured just before' }))
  if (health.values.length > 0) print(figureOf(`GET /health during these, ${label}: p99`, 'ms', health.values, { note: 'one request after the other, all runs together' }))
}

/** The first standby only, against boots of the same machine. */
async function firstStandby ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const image = await makeGuestImage(createHostCommands(), folder)
    for (const shape of shapes) {
      const cold = await startBerth({ folder: join(folder, shape.size), plugins: withoutKept(templatesOff()), signal }, image)
      try {
        const boots = await prepareRawBoots(cold, { argv, size: shape.size }, createHostCommands(), join(folder, `raw-${shape.size}`))
        const [raw, first, health] = [series(rawBootName), series(`first standby after a cold boot, ${shape.label}`), series('p99 of GET /health meanwhile')]
        await takeTurns({ runs, sides: [async (_run, keep) => keep(raw, await boots.time())] })
        await firstStandbys(cold, shape, runs, { first, health })
        reportFirst(shape, { raw, first, health })
      } finally {
        await cold.server.stop()
      }
    }
  })
}

/** The default configuration and shape. */
async function standbyDefault ({ runs }: BenchOptions): Promise<void> {
  await fetchKernel()
  await runInOwnNetwork(new URL('inside.js', import.meta.url), runs)
}

export const benchmarks: Benchmarks = { standby, 'standby-default': standbyDefault, 'first-standby': firstStandby }
export const accelerated = ['standby']
