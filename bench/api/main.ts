// `npm run bench -- api`: reading instances over the API, against a bare Fastify server that has the same objects in memory.
import { spawn, type ChildProcess } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createHostCommands } from '../../core/process/run.ts'
import { createApi } from '../../setup/server/api.ts'
import { startServer } from '../../setup/server/process.ts'
import { pushDemoImage } from '../../setup/quickstart/demo-image.ts'
import { inFolder } from '../folder.ts'
import { compare, print } from '../harness.ts'
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

async function api ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const first = await startServer({ folder, signal })
    const image = await pushDemoImage(createHostCommands(), folder, new URL(first.url).host, first.key)
    const client = createApi(first.url, first.key)
    const id = await storeOne(client, image)
    await first.stop()
    await multiplyInstance(first.dataDir, id, storedInstances)
    const server = await first.restart()
    const objects = await createApi(server.url, server.key).call('GET', '/instances')
    if (!Array.isArray(objects) || objects.length !== storedInstances) throw new Error(`the server lists ${Array.isArray(objects) ? objects.length : 'no'} instances instead of ${storedInstances}`)
    const file = join(folder, 'objects.json')
    await writeFile(file, JSON.stringify(objects))
    const bare = spawn(process.execPath, [join(here, 'bare.js'), file], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
    const other = { url: `http://127.0.0.1:${await firstLine(bare)}` }
    try {
      for (const [name, path] of [['GET /instances/{id}', `/instances/${id}`], ['GET /instances', '/instances']] as const) {
        print(await compare({
          name: `${name}, ${storedInstances} stored`,
          unit: 'requests/s',
          otherName: 'bare Fastify, objects in memory, same schema',
          runs,
          note: `${connections} keep-alive connections, ${secondsPerRun} s a run`,
          ours: async () => await requestsPerSecond(server, path),
          other: async () => await requestsPerSecond(other, path)
        }))
      }
    } finally {
      bare.kill()
      await server.stop()
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
