// `npm run bench -- api`: reading instances over the API, against a bare Fastify server that has the same objects in memory.
import { spawn, type ChildProcess } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createHostCommands } from '../../core/process/run.ts'
import { createApi } from '../../setup/server/api.ts'
import { startServer, type ServerOptions, type ServerProcess } from '../../setup/server/process.ts'
import { pushDemoImage } from '../../setup/quickstart/demo-image.ts'
import { inFolder } from '../folder.ts'
import { figureOf, print, series, takeTurns, type Keep } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { multiplyInstance } from './stored-instances.ts'

const storedInstances = 1000
const connections = 8
const secondsPerRun = 2
const here = dirname(fileURLToPath(import.meta.url))

interface Target { readonly url: string, readonly key?: string }

/** The first line that a child prints. */
async function firstLine (child: ChildProcess): Promise<string> {
  let text = ''
  return await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', code => reject(new Error(`it ended with code ${String(code)} before it said anything`)))
    child.stdout?.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      if (text.includes('\n')) resolve(text.trim())
    })
  })
}

/** Requests per second for one path, from a load generator in its own process. */
async function requestsPerSecond (target: Target, path: string): Promise<number> {
  const { hostname, port } = new URL(target.url)
  const child = spawn(process.execPath, [join(here, 'load.js'), hostname, port, path, String(connections), String(secondsPerRun)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...(target.key === undefined ? {} : { BENCH_KEY: target.key }) }
  })
  return Number(await firstLine(child))
}

/** A server with so many stored instances, one of them, and the server's answer with all of them. */
interface Stored { readonly server: ServerProcess, readonly id: string, readonly objects: readonly unknown[] }

async function startWithInstances (options: ServerOptions): Promise<Stored> {
  const first = await startServer(options)
  const image = await pushDemoImage(createHostCommands(), options.folder, new URL(first.url).host, first.key)
  const client = createApi(first.url, first.key)
  const id = await storeOne(client, image)
  await first.stop()
  await multiplyInstance(first.dataDir, id, storedInstances)
  const server = await first.restart()
  const objects = await createApi(server.url, server.key).call('GET', '/instances')
  if (!Array.isArray(objects) || objects.length !== storedInstances) throw new Error(`the server lists ${Array.isArray(objects) ? objects.length : 'no'} instances instead of ${storedInstances}`)
  return { server, id, objects }
}

async function api ({ runs, before }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const present = await startWithInstances({ folder: join(folder, 'present'), signal })
    const earlier = before === undefined ? undefined : await startWithInstances({ folder: join(folder, 'before'), program: join(before, 'dist/core/main.js'), signal })
    const file = join(folder, 'objects.json')
    await writeFile(file, JSON.stringify(present.objects))
    const bare = spawn(process.execPath, [join(here, 'bare.js'), file], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    const other = { url: `http://127.0.0.1:${await firstLine(bare)}` }
    try {
      for (const [name, pathOf] of [['GET /instances/{id}', ({ id }: Stored) => `/instances/${id}`], ['GET /instances', () => '/instances']] as const) {
        const [ours, bareRates, earlierRates] = [series(name), series('bare Fastify, objects in memory, same schema'), series('the other build')]
        const note = `${connections} keep-alive connections, ${secondsPerRun} s a run`
        await takeTurns({
          runs,
          sides: [
            async (_run, keep) => keep(ours, await requestsPerSecond(present.server, pathOf(present))),
            async (_run, keep) => keep(bareRates, await requestsPerSecond(other, pathOf(present))),
            ...earlier === undefined ? [] : [async (_run: number, keep: Keep) => keep(earlierRates, await requestsPerSecond(earlier.server, pathOf(earlier)))]
          ]
        })
        print(figureOf(`${name}, ${storedInstances} stored`, 'requests/s', ours.values, { other: bareRates, note }))
        if (earlier !== undefined) print(figureOf(`${name}, ${storedInstances} stored, against the other build`, 'requests/s', ours.values, { other: earlierRates, ratioAtLeast: 0.95, note }))
      }
    } finally {
      bare.kill()
      await Promise.all([present, ...earlier === undefined ? [] : [earlier]].map(async ({ server }) => await server.stop()))
    }
  })
}

/** Makes one instance through the API and waits until its program has ended. */
async function storeOne (client: ReturnType<typeof createApi>, image: string): Promise<string> {
  const created = await client.call('POST', '/instances', {
    name: 'stored-0', image, size: '128MB', vcpus: 1, overlay_size: '64MB', entrypoint: [], cmd: ['/bin/true'],
    env: { LANG: 'C', GREETING: 'hello' }, tags: { purpose: 'benchmark', team: 'platform' }
  })
  if (typeof created !== 'object' || created === null || !('id' in created)) throw new Error('the server did not answer with an instance')
  const id = String(created.id)
  await client.call('GET', `/instances/${id}/wait?state=Stopped&timeout=60s`)
  return id
}

export const benchmarks: Benchmarks = { api }
