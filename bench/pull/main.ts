// `npm run bench -- pull`: from an image in a registry to a bootable disk, over the API and by the same three tools in a row.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { HostCommands } from '../../core/contracts/services.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { createApi, type Api } from '../../setup/server/api.ts'
import { startServer } from '../../setup/server/process.ts'
import { inFolder } from '../folder.ts'
import { compare, print } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { emptyFolder, pushLayers, startRegistry } from './registry.ts'

/** Seconds from the request to the image being ready. */
async function throughApi (client: Api, reference: string): Promise<number> {
  const started = performance.now()
  await client.call('POST', '/images', { name: reference })
  let image = await client.call('GET', `/images/${encodeURIComponent(reference)}`)
  while (statusOf(image) !== 'ready') {
    if (statusOf(image) === 'failed') throw new Error(`the pull failed: ${JSON.stringify(image)}`)
    await delay(10)
    image = await client.call('GET', `/images/${encodeURIComponent(reference)}`)
  }
  const seconds = (performance.now() - started) / 1000
  await client.call('DELETE', `/images/${encodeURIComponent(reference)}`)
  return seconds
}

/** Seconds for the same work by hand. */
async function byHand (commands: HostCommands, folder: string, reference: string): Promise<number> {
  const work = await emptyFolder(join(folder, 'by-hand'))
  const started = performance.now()
  await commands.run('skopeo', ['copy', '--quiet', '--src-tls-verify=false', `docker://${reference}`, `oci:${join(work, 'layout')}:image`])
  await commands.run('umoci', ['unpack', '--image', `${join(work, 'layout')}:image`, join(work, 'bundle')])
  await commands.run('mkfs.erofs', ['--quiet', join(work, 'rootfs.erofs'), join(work, 'bundle/rootfs')])
  const seconds = (performance.now() - started) / 1000
  await rm(work, { recursive: true, force: true })
  return seconds
}

function statusOf (image: unknown): string {
  return typeof image === 'object' && image !== null && 'status' in image ? String(image.status) : ''
}

async function pull ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const commands = createHostCommands()
    const registry = await startRegistry(folder)
    const reference = await pushLayers(commands, folder, registry.host)
    const server = await startServer({ folder, signal })
    const client = createApi(server.url, server.key)
    try {
      print(await compare({
        name: 'image from a local registry to ready',
        unit: 's',
        otherName: 'skopeo copy, umoci unpack, mkfs.erofs in a row',
        runs,
        ours: async () => await throughApi(client, reference),
        other: async () => await byHand(commands, folder, reference)
      }))
    } finally {
      await server.stop()
      await registry.stop()
    }
  })
}

export const benchmarks: Benchmarks = { pull }
