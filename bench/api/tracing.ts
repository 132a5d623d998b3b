// `npm run bench -- api-tracing`: what traces of every request cost the reads of `api`: the same server with a collector and without.
import { spawn } from 'node:child_process'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inFolder } from '../folder.ts'
import { figureOf, print, series, summarize, takeTurns, type Series } from '../harness.ts'
import type { BenchOptions } from '../options.ts'
import { CONNECTIONS, firstLine, requestsPerSecond } from './rate.ts'
import { READS } from './reads.ts'
import { startWithInstances, STORED, type Stored } from './stored-server.ts'

/** As in `api`. */
const SECONDS = 2
/** Of each start of a server: the first ones are discarded. V8 compiles for some seconds, and longer where there is more code: at first a traced request costs half as much again as later. */
const WARM_UPS = 2
const TURNS = 3
const here = dirname(fileURLToPath(import.meta.url))

interface Side { readonly stored: Stored, readonly rates: readonly Series[] }

export async function tracing ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const collector = spawn(process.execPath, [join(here, 'collector.js')], { stdio: ['ignore', 'pipe', 'inherit'] })
    try {
      const endpoint = `http://127.0.0.1:${await firstLine(collector)}/v1/traces`
      const sides: [Side, Side] = [
        { stored: await startWithInstances({ folder: join(folder, 'traced'), plugins: { tracing: { config: { endpoint } } }, signal }), rates: READS.map(({ name }) => series(`${name}, each traced`)) },
        { stored: await startWithInstances({ folder: join(folder, 'untraced'), signal }), rates: READS.map(({ name }) => series(`${name}, tracing off`)) }
      ]
      for (const { stored: { server } } of sides) await server.stop()
      // Each run has servers of its own, one after the other: one and the same build differs by a fifth from start to start, and a second server takes processor and cache also while it is asked nothing.
      await takeTurns({ runs, warmUps: 0, sides: sides.map((side) => async (_run, keep) => { for (const [rates, rate] of await startAndMeasure(side)) keep(rates, rate) }) })
      const note = `${STORED} stored, ${CONNECTIONS} keep-alive connections, medians of ${TURNS} times ${SECONDS} s after ${WARM_UPS} more, for each of so many starts of each server`
      const [{ rates: traced }, { rates: untraced }] = sides
      for (const [index, { name }] of READS.entries()) print(figureOf(`${name}, each traced`, 'requests/s', traced[index]?.values ?? [], { ...untraced[index] === undefined ? {} : { other: untraced[index] }, ratioAtLeast: 0.9, note }))
    } finally {
      collector.kill()
    }
  })
}

/** The median rate of each read, of a server that is started for this. */
async function startAndMeasure ({ stored, rates }: Side): Promise<(readonly [Series, number])[]> {
  const server = await stored.server.restart()
  const found: (readonly [Series, number])[] = []
  for (const [index, { pathOf }] of READS.entries()) {
    const values: number[] = []
    for (let turn = 0; turn < WARM_UPS + TURNS; turn++) {
      const rate = await requestsPerSecond(server, pathOf(stored), SECONDS)
      if (turn >= WARM_UPS) values.push(rate)
    }
    if (rates[index] !== undefined) found.push([rates[index], summarize(values).median])
  }
  await server.stop()
  return found
}
