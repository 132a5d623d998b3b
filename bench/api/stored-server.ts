// A server with many stored instances.
import { createHostCommands } from '../../core/process/run.ts'
import { createApi } from '../../setup/server/api.ts'
import { startServer, type ServerOptions, type ServerProcess } from '../../setup/server/process.ts'
import { pushDemoImage } from '../../setup/quickstart/demo-image.ts'
import { multiplyInstance } from './stored-instances.ts'

export const STORED = 1000

/** A server with so many stored instances, one of them, and the server's answer with all of them. */
export interface Stored { readonly server: ServerProcess, readonly id: string, readonly objects: readonly unknown[] }

export async function startWithInstances (options: ServerOptions): Promise<Stored> {
  const first = await startServer(options)
  const image = await pushDemoImage(createHostCommands(), options.folder, new URL(first.url).host, first.key)
  const client = createApi(first.url, first.key)
  const id = await storeOne(client, image)
  await first.stop()
  await multiplyInstance(first.dataDir, id, STORED)
  const server = await first.restart()
  const objects = await createApi(server.url, server.key).call('GET', '/instances')
  if (!Array.isArray(objects) || objects.length !== STORED) throw new Error(`the server lists ${Array.isArray(objects) ? objects.length : 'no'} instances instead of ${STORED}`)
  return { server, id, objects }
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
