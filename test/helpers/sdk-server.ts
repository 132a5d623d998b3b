// A server on which every method of the official SDKs has something to work on: a network, an ingress and a registry to push to.
import { existsSync } from 'node:fs'
import type { Test } from 'tap'
import { createHostCommands } from '../../core/process/run.ts'
import { freePort } from './free-port.ts'
import { ownNetwork } from './own-network.ts'
import { startTestServer, type TestServer } from './server.ts'
import { startUpstreamRegistry } from './upstream-registry.ts'

export interface SdkServer {
  readonly server: TestServer
  /** port of its ingress */
  readonly port: number
  /** host:port of a registry on plain HTTP */
  readonly registry: string
}

export async function startSdkServer (t: Test): Promise<SdkServer> {
  const { namespace, cidr } = ownNetwork()
  t.teardown(async () => {
    // Only after a failure: a server that stops in order removes it.
    if (existsSync(`/run/netns/${namespace}`)) await createHostCommands().run('ip', ['netns', 'delete', namespace])
  })
  const registry = await startUpstreamRegistry(t)
  const port = await freePort('127.0.0.1')
  const server = await startTestServer(t, {
    plugins: {
      networking: { config: { uplink: 'none', namespace, cidr } },
      ingress: { config: { listen: { address: '127.0.0.1', http: [port] }, limits: { workers: 1, connections: 64 } } },
      builds: { config: { prepare: false } },
      resources: { enabled: true }
    }
  })
  return { server, port, registry: registry.host }
}
