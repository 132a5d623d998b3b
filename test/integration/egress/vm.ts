// A real machine behind the proxy, made through the API, with everything kept that the API ever said.
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import Hypeman from '@onkernel/hypeman'
import type { Test } from 'tap'
import type { ServerOptions } from '../../../setup/server/process.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { runCommand } from '../../helpers/exec.ts'
import { testFolder } from '../../helpers/folder.ts'
import { waitFor } from '../../helpers/machine.ts'
import { ownNetwork } from '../../helpers/own-network.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'
import { FURTHER_PORT } from './origins/contract.ts'
import { openOutside, WAN, type Outside } from './outside.ts'
import { CREDENTIALS, makeSecrets, type Guest, type Secrets, type Stage } from './stage.ts'

export interface VmStage extends Stage {
  readonly server: RecordedServer
  readonly id: string
}

export interface RecordedServer extends TestServer {
  /** all bodies that the API answered with, and all that commands printed */
  readonly answers: Buffer[]
}

export interface World {
  readonly server: RecordedServer
  readonly outside: Outside
  readonly secrets: Secrets
}

/** Origins outside, and a server whose way out leads there. */
export async function openWorld (t: Test, plugins: ServerOptions['plugins'] = {}): Promise<World> {
  const secrets = makeSecrets()
  const outside = await openOutside(t, { bearer: secrets.REAL_KEY, basic: secrets.REAL_LOGIN })
  const folder = testFolder(t, { 'roots.pem': outside.authority })
  const { namespace, cidr } = ownNetwork()
  t.teardown(async () => {
    // Only after a failure: a server that stops in order removes it.
    if (existsSync(`/run/netns/${namespace}`)) await createHostCommands().run('ip', ['netns', 'delete', namespace])
  })
  const server = await startTestServer(t, {
    plugins: {
      networking: { config: { uplink: WAN, namespace, cidr, dns: { servers: [outside.nameServer] } } },
      egress: { config: { roots: [join(folder, 'roots.pem')], ports: { https: [443, FURTHER_PORT] } } },
      ...plugins
    }
  })
  return { server: recorded(server), outside, secrets }
}

/** The same server, with every answer kept. */
function recorded (server: TestServer): RecordedServer {
  const answers: Buffer[] = []
  const keep = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const answer = await fetch(input, init)
    if (answer.body === null) return answer
    if (answer.headers.get('content-type')?.includes('event-stream') === true) {
      // May never end: kept as it comes.
      const [kept, passed] = answer.body.tee()
      void (async () => { for await (const piece of kept) answers.push(Buffer.from(piece as Uint8Array)) })().catch(() => {})
      return new Response(passed, answer)
    }
    const body = Buffer.from(await answer.arrayBuffer())
    answers.push(body, Buffer.from(JSON.stringify([...answer.headers])))
    return new Response(body, answer)
  }
  const options = (): ConstructorParameters<typeof Hypeman>[0] => ({ baseURL: server.url, apiKey: server.key, maxRetries: 0, timeout: 300_000, fetch: keep })
  return Object.defineProperties(Object.create(server) as RecordedServer, { answers: { value: answers }, sdk: { get: () => new Hypeman(options()) } })
}

/** Commands in a machine, through the API. */
export function guestOf (server: RecordedServer, id: string): Guest {
  return {
    async run (script) {
      const { stdout, stderr, exitCode } = await runCommand(server, id, { command: ['/bin/sh', '-c', script] })
      server.answers.push(Buffer.from(stdout), Buffer.from(stderr))
      return { stdout, stderr, exitCode }
    }
  }
}

/** A machine with the policy of `stage.ts`, that waits for commands. `MARKER` is in its environment as it is. */
export async function createVm (world: World, image: string, mode: 'all' | 'http_https_only', marker: string, { size = '768MB', vcpus = 1 } = {}): Promise<VmStage> {
  const { server, secrets } = world
  const created = await server.sdk.instances.create({
    name: `clients-${randomBytes(4).toString('hex')}`, image, size, vcpus, overlay_size: '2GB', entrypoint: [], cmd: ['/bin/sh', '-c', 'env; sleep 100000'],
    env: { ...secrets, MARKER: marker },
    credentials: Object.fromEntries(Object.entries(CREDENTIALS).map(([name, { source, inject }]) => [name, { source, inject: inject.map((each) => ({ ...each, ...'hosts' in each ? { hosts: [...each.hosts] } : {} })) }])),
    network: { enabled: true, egress: { enabled: true, enforcement: { mode } } }
  }, { headers: { 'idempotency-key': randomBytes(8).toString('hex') } })
  await waitFor(server, created.id, 'Running')
  return { ...world, id: created.id, guest: guestOf(server, created.id) }
}
