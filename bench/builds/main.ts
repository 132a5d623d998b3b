// `npm run bench -- build`: a build in a VM with an empty cache and with a full one, and the same on this host without a VM.
import { setTimeout as delay } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { createHostCommands } from '../../core/process/run.ts'
import { createApi, type Api } from '../../setup/server/api.ts'
import { startServer, type ServerProcess } from '../../setup/server/process.ts'
import { tar } from '../../test/helpers/tar.ts'
import { field, idOf } from '../berth.ts'
import { inFolder } from '../folder.ts'
import { figureOf, print, series, takeTurns } from '../harness.ts'
import type { Benchmarks, BenchOptions } from '../options.ts'
import { prepareHost } from './on-host.ts'
import { pushBase, sourceArchive } from './sources.ts'

const RATIO_CACHED = 0.3
/** one build gets everything that this machine has, on both sides */
const FIELDS = { network_mode: 'isolated', cpus: '2', memory_mb: '2048' }

async function build ({ runs }: BenchOptions): Promise<void> {
  await inFolder(async (folder, signal) => {
    const server = await startServer({ folder, signal, plugins: { builds: { config: { secretsDir: '', prepare: true } } } })
    const api = createApi(server.url, server.key)
    try {
      await pushBase(folder, new URL(server.url).host, server.key)
      const source = sourceArchive()
      // The first build waits for the image of builders.
      await buildOnce(server, api, gzipSync(tar([{ path: 'Dockerfile', content: 'FROM scratch\nCOPY Dockerfile /\n' }])), {})
      const host = await prepareHost(createHostCommands(), folder, server)
      const cold = series('build, cold: POST /builds to ready')
      const cached = series('build, cached: the same again on the disk of its builder')
      const onHost = series('the same builder on this host, without a VM: buildah build and push, cold')
      await takeTurns({
        runs,
        sides: [
          async (run, keep) => {
            const id = idOf(await api.call('POST', '/builders', { id: `bench-${run}` }))
            keep(cold, await buildOnce(server, api, source, { builder_id: id }))
            keep(cached, await buildOnce(server, api, source, { builder_id: id }))
            await removeBuilder(api, id)
          },
          async (run, keep) => keep(onHost, await host.build(run))
        ]
      })
      print(figureOf(cached.name, 's', cached.values, { other: cold, ratioAtMost: RATIO_CACHED }))
      print(figureOf(cold.name, 's', cold.values, { other: onHost, note: 'the VM side also has its upload, its boot, and the image made ready for instances; a step is isolated by crun there, and by chroot on the host' }))
    } finally {
      await server.stop()
    }
  })
}

/** Seconds from the request to the image being ready. */
async function buildOnce (server: ServerProcess, api: Api, source: Buffer, fields: Readonly<Record<string, string>>): Promise<number> {
  const form = new FormData()
  form.set('source', new Blob([source]), 'source.tar.gz')
  for (const [name, value] of Object.entries({ ...FIELDS, ...fields })) form.set(name, value)
  const started = performance.now()
  const response = await fetch(`${server.url}/builds`, { method: 'POST', headers: { authorization: `Bearer ${server.key}` }, body: form })
  const id = idOf(await response.json())
  for await (const line of api.lines(`/builds/${id}/events?follow=true`)) void line
  const seconds = (performance.now() - started) / 1000
  const ended = await api.call('GET', `/builds/${id}`)
  if (field(ended, 'status') !== 'ready') throw new Error(`the build is ${String(field(ended, 'status'))}: ${String(field(ended, 'error'))}`)
  return seconds
}

/** Removes a builder as soon as its last build has nothing left to do. */
async function removeBuilder (api: Api, id: string): Promise<void> {
  while (field(await api.call('GET', `/builders/${id}`), 'active_build_id') !== null) await delay(50)
  await api.call('DELETE', `/builders/${id}`)
}

export const benchmarks: Benchmarks = { build }
