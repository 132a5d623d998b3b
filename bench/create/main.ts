// `npm run bench -- create`: from the request to the program's first line of output, against the same command line started by hand.
import { join } from 'node:path'
import { createHostCommands } from '../../core/process/run.ts'
import { createApi, type Api } from '../../setup/server/api.ts'
import { startServer } from '../../setup/server/process.ts'
import { pushDemoImage } from '../../setup/quickstart/demo-image.ts'
import { inFolder } from '../folder.ts'
import { compare, print } from '../harness.ts'
import { commandLineOf, startByHand } from './by-hand.ts'

const runs = 10
const firstLine = 'ready'
const argv = ['/bin/sh', '-c', `echo ${firstLine}; sleep 600`]
const overlayMegabytes = 1024

async function create (client: Api, image: string, name: string): Promise<string> {
  const created = await client.call('POST', '/instances', { name, image, size: '256MB', vcpus: 1, overlay_size: `${overlayMegabytes}MB`, entrypoint: [], cmd: argv })
  if (typeof created !== 'object' || created === null || !('id' in created)) throw new Error('the server did not answer with an instance')
  return String(created.id)
}

/** Waits until the instance is Running and has printed its first line. */
async function ready (client: Api, id: string): Promise<void> {
  const stop = new AbortController()
  const printed = (async () => {
    for await (const line of client.lines(`/instances/${id}/logs?follow=true`, stop.signal)) if (line === firstLine) return
    throw new Error('the output ended without its first line')
  })()
  await Promise.all([printed, client.call('GET', `/instances/${id}/wait?state=Running&timeout=120s`)])
}

/** Milliseconds over the API, the connection of each call included. */
async function throughApi (client: Api, image: string, run: number): Promise<number> {
  const started = performance.now()
  const id = await create(client, image, `bench-${run}`)
  await ready(client, id)
  const elapsed = performance.now() - started
  await client.call('DELETE', `/instances/${id}?graceful_shutdown=false`)
  return elapsed
}

/** The benchmark. */
export async function createBench (): Promise<void> {
  await inFolder(async (folder, signal) => {
    const commands = createHostCommands()
    const server = await startServer({ folder, signal })
    const client = createApi(server.url, server.key)
    const image = await pushDemoImage(commands, folder, new URL(server.url).host, server.key)
    const model = await create(client, image, 'bench-model')
    await ready(client, model)
    const line = await commandLineOf(server.dataDir, model)
    await client.call('DELETE', `/instances/${model}?graceful_shutdown=false`)
    const workload = { argv, env: { PATH: '/bin' }, cwd: '/', user: '', hostname: 'by-hand', mounts: [], agent: true }
    try {
      print(await compare({
        name: 'POST /instances to Running and the first line of output',
        unit: 'ms',
        otherName: 'the same QEMU command line started by hand, its disks made before',
        runs,
        note: '256 MB, 1 vCPU, the image ready',
        ours: async run => await throughApi(client, image, run),
        other: async run => await startByHand({
          commands, dataDir: join(folder, 'by-hand'), id: `run-${run}`, line, workload, overlayBytes: overlayMegabytes * 2 ** 20, firstLine
        })
      }))
    } finally {
      await server.stop()
    }
  })
}
