// The measuring part of the egress benchmark: a program in a network namespace of its own, so that none of it can be reached from elsewhere.
import { setTimeout as delay } from 'node:timers/promises'
import { createHostCommands } from '../../core/process/run.ts'
import { processTree } from '../../test/helpers/process-tree.ts'
import { figureOf, print, series, takeTurns, type Series } from '../harness.ts'
import { askProgram, type Way } from './child.ts'
import type { InsideOptions } from './main.ts'
import { residentMegabytes } from './memory.ts'
import { rivalNames } from './rivals.ts'
import { setStage, type Stage } from './stage.ts'
import { compareWorkers } from './workers.ts'

const connections = 50
const streamBytes = 512 * 1024 * 1024
/** One stream takes a second or two, and varies more than anything else here. */
const streamsPerRun = 3
const secondsEach = 4
const warmSeconds = 1
const namesEach = 20
const sampleMs = 1_000
const bareName = 'https.createServer and https.request with a keep-alive agent, no checks'
const directName = 'direct'

async function measureLoad (way: Way, count: number, seconds = secondsEach): Promise<{ perSecond: number, p50Ms: number, p99Ms: number }> {
  const { perSecond = NaN, p50Ms = NaN, p99Ms = NaN } = await askProgram('load', { way, connections: count, seconds, warmSeconds })
  return { perSecond, p50Ms, p99Ms }
}

async function compareRequests ({ ways }: Stage, runs: number): Promise<void> {
  const rivals = await rivalNames(createHostCommands())
  const ours = series('berth-egress, every check on')
  const sides: readonly [Series, Way, { ratioAtLeast?: number }][] = [
    [series(directName), ways.direct, {}],
    [series(bareName), ways.bare, { ratioAtLeast: 0.75 }],
    [series(rivals.mockttp), ways.mockttp, { ratioAtLeast: 4 }],
    [series(rivals.mitmproxy), ways.mitmproxy, { ratioAtLeast: 10 }]
  ]
  await takeTurns({
    runs,
    sides: [[ours, ways.egress] as const, ...sides].map(([one, way]) => async (_run, keep) => keep(one, (await measureLoad(way, connections)).perSecond))
  })
  const note = `${connections} keep-alive connections, GET of 100 bytes over TLS, ${secondsEach} s a run`
  for (const [other, , wanted] of sides) print(figureOf(`requests through berth-egress against ${other.name}`, 'requests/s', ours.values, { other, note, ...wanted }))
}

async function compareLatency ({ ways }: Stage, runs: number): Promise<void> {
  const [p50, p99, directP50, directP99] = [series('median latency'), series('99th percentile of latency'), series(directName), series(directName)]
  await takeTurns({
    runs,
    sides: ([[ways.egress, p50, p99], [ways.direct, directP50, directP99]] as const).map(([way, middle, high]) => async (_run, keep) => {
      const { p50Ms, p99Ms } = await measureLoad(way, 1)
      keep(middle, p50Ms)
      keep(high, p99Ms)
    })
  })
  for (const [ours, direct, most] of [[p50, directP50, 1], [p99, directP99, 10]] as const) {
    print(figureOf(`${ours.name} at 1 connection`, 'ms', ours.values, { other: direct }))
    print(figureOf(`${ours.name} at 1 connection, added to direct`, 'ms', differences(ours, direct), { note: `at most ${most} is wanted` }))
  }
}

async function compareFirstContact (stage: Stage, runs: number): Promise<void> {
  const [ours, direct] = [series('first contact with a new host'), series('direct, a new connection')]
  const contact = async (way: Way) => (await askProgram('contact', { way, port: stage.port, names: stage.newNames(namesEach) }))['medianMs'] ?? NaN
  await takeTurns({ runs, sides: [async (_run, keep) => keep(ours, await contact(stage.ways.egress)), async (_run, keep) => keep(direct, await contact(stage.ways.direct))] })
  print(figureOf(ours.name, 'ms', ours.values, { other: direct, note: `the median of ${namesEach} names, from connecting to the answer` }))
  print(figureOf(`${ours.name}, added to direct`, 'ms', differences(ours, direct), { note: 'name resolution, certificate and two handshakes; at most 15 is wanted' }))
}

async function compareStreams (stage: Stage, runs: number): Promise<void> {
  for (const http2 of [false, true]) {
    const { direct, egress, pipe } = http2 ? stage.http2Ways : stage.ways
    for (const upload of [false, true]) {
      const title = `${upload ? 'upload' : 'download'} over one ${http2 ? 'HTTP/2' : 'HTTP/1.1'} connection`
      const [ours, other, ceiling] = [series(title), series(directName), series(`${title} through a pipe from TLS to TLS without HTTP`)]
      const stream = async (way: Way) => (await askProgram('stream', { way, size: streamBytes, upload, http2 }))['megabytesPerSecond'] ?? NaN
      await takeTurns({ runs: runs * streamsPerRun, sides: ([[ours, egress], [other, direct], [ceiling, pipe]] as const).map(([one, way]) => async (_run, keep) => keep(one, await stream(way))) })
      const note = `${streamBytes / 1024 / 1024} MiB; AES-128-GCM between client and berth-egress, AES-256-GCM elsewhere, as each server chooses`
      print(figureOf(title, 'MB/s', ours.values, { other, ratioAtLeast: 0.5, note }))
      print(figureOf(ceiling.name, 'MB/s', ceiling.values, { other, note: 'the most that one process of Node gets to with client and origin on the same processors' }))
    }
  }
}

async function watchMemory ({ ways, proxy }: Stage, seconds: number): Promise<void> {
  const pid = proxy.process.pid ?? 0
  const samples: { minutes: number, megabytes: number }[] = []
  const load = measureLoad(ways.egress, connections, seconds)
  const beganMs = performance.now()
  let each: readonly number[] = []
  do {
    each = await Promise.all(processTree(pid).map(residentMegabytes))
    samples.push({ minutes: (performance.now() - beganMs) / 60_000, megabytes: each.reduce((sum, megabytes) => sum + megabytes, 0) })
  } while (await Promise.race([load.then(() => false), delay(sampleMs, true)]))
  const { perSecond } = await load
  // A program that has just started to work grows until its caches are full.
  const steady = samples.slice(Math.floor(samples.length / 5))
  const note = `${seconds} s at ${connections} connections and ${Math.round(perSecond)} requests/s; sampled each second, the first fifth left out; the parent and its workers together`
  print(figureOf('resident memory of the parent and of each worker, at the end', 'MB', [...each], { note: 'one VM, whose worker carries all of it; what processes share is counted in each' }))
  print(figureOf('resident memory under load, at the start', 'MB', [steady[0]?.megabytes ?? NaN], { note }))
  print(figureOf('resident memory under load, at the end', 'MB', [steady.at(-1)?.megabytes ?? NaN], { note }))
  print(figureOf('resident memory under load', 'MB', steady.map(sample => sample.megabytes), { note }))
  print(figureOf('growth of resident memory under load', 'MB/minute', [slopeOf(steady)], { note }))
}

/** The slope of the line that fits the samples best. */
function slopeOf (samples: readonly { readonly minutes: number, readonly megabytes: number }[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length
  const [x, y] = [mean(samples.map(({ minutes }) => minutes)), mean(samples.map(({ megabytes }) => megabytes))]
  const above = samples.reduce((sum, { minutes, megabytes }) => sum + (minutes - x) * (megabytes - y), 0)
  return above / samples.reduce((sum, { minutes }) => sum + (minutes - x) ** 2, 0)
}

/** The differences between measurements of the same turn. */
function differences (ours: Series, theirs: Series): number[] {
  return ours.values.map((value, index) => value - (theirs.values[index] ?? NaN))
}

async function main ({ folder, runs, seconds, before, hasRivals }: InsideOptions): Promise<void> {
  await createHostCommands().run('ip', ['link', 'set', 'dev', 'lo', 'up'])
  await compareWorkers(runs, before)
  if (!hasRivals) return
  const stage = await setStage(folder)
  try {
    await compareRequests(stage, runs)
    await compareLatency(stage, runs)
    await compareFirstContact(stage, runs)
    await compareStreams(stage, runs)
    await watchMemory(stage, seconds)
  } finally {
    await stage.stop()
  }
}

await main(JSON.parse(process.argv[2] ?? '{}'))
process.exit(0)
