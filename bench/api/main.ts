// `npm run bench -- api`: reading instances over the API, against a bare Fastify server that has the same objects in memory.
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inFolder } from '../folder.ts'
import { figureOf, print, series, takeTurns, type Keep } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { CONNECTIONS, firstLine, requestsPerSecond } from './rate.ts'
import { READS } from './reads.ts'
import { startWithInstances, STORED } from './stored-server.ts'
import { tracing } from './tracing.ts'

const SECONDS = 2
const here = dirname(fileURLToPath(import.meta.url))

async function api ({ runs, before }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const present = await startWithInstances({ folder: join(folder, 'present'), signal })
    const earlier = before === undefined ? undefined : await startWithInstances({ folder: join(folder, 'before'), program: join(before, 'dist/core/main.js'), signal })
    const file = join(folder, 'objects.json')
    await writeFile(file, JSON.stringify(present.objects))
    const bare = spawn(process.execPath, [join(here, 'bare.js'), file], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    const other = { url: `http://127.0.0.1:${await firstLine(bare)}` }
    try {
      for (const { name, pathOf } of READS) {
        const [ours, bareRates, earlierRates] = [series(name), series('bare Fastify, objects in memory, same schema'), series('the other build')]
        const note = `${CONNECTIONS} keep-alive connections, ${SECONDS} s a run`
        await takeTurns({
          runs,
          sides: [
            async (_run, keep) => keep(ours, await requestsPerSecond(present.server, pathOf(present), SECONDS)),
            async (_run, keep) => keep(bareRates, await requestsPerSecond(other, pathOf(present), SECONDS)),
            ...earlier === undefined ? [] : [async (_run: number, keep: Keep) => keep(earlierRates, await requestsPerSecond(earlier.server, pathOf(earlier), SECONDS))]
          ]
        })
        print(figureOf(`${name}, ${STORED} stored`, 'requests/s', ours.values, { other: bareRates, note }))
        if (earlier !== undefined) print(figureOf(`${name}, ${STORED} stored, against the other build`, 'requests/s', ours.values, { other: earlierRates, ratioAtLeast: 0.95, note }))
      }
    } finally {
      bare.kill()
      await Promise.all([present, ...earlier === undefined ? [] : [earlier]].map(async ({ server }) => await server.stop()))
    }
  })
}

export const benchmarks: Benchmarks = { api, 'api-tracing': tracing }
