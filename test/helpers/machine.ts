// Shorthand for tests that boot machines: create, wait, read what was printed.
import { randomBytes } from 'node:crypto'
import type Hypeman from '@onkernel/hypeman'
import { PATIENCE_MS } from './eventually.ts'
import type { TestServer } from './server.ts'
import { SMALL } from './small.ts'

export type CreateParams = Hypeman.InstanceCreateParams
type Instance = Hypeman.Instance

/** Creates an instance with a name of its own and small resources. */
export async function createMachine (server: TestServer, image: string, params: Partial<CreateParams> = {}): Promise<Instance> {
  return await server.sdk.instances.create({ name: `machine-${randomBytes(4).toString('hex')}`, image, ...SMALL, ...params })
}

/** Creates an instance that runs a shell script and stays in its state until the script ends. */
export async function createShell (server: TestServer, image: string, script: string, params: Partial<CreateParams> = {}): Promise<Instance> {
  return await createMachine(server, image, { entrypoint: [], cmd: ['/bin/sh', '-c', script], ...params })
}

/** Waits for a state and fails with what is known when it does not come. */
export async function waitFor (server: TestServer, id: string, state: 'Running' | 'Stopped' | 'Unknown', timeout = `${PATIENCE_MS}ms`): Promise<Instance> {
  const answer = await server.sdk.instances.wait(id, { state, timeout })
  const instance = await server.sdk.instances.get(id)
  if (answer.state !== state) {
    throw new Error(`the instance is ${answer.state} instead of ${state}, ${instance.state_error ?? 'for no error'}; exit ${String(instance.exit_code)} ${instance.exit_message ?? ''}\n${(await lines(server, id, { source: 'vmm', tail: 20 })).join('\n')}`)
  }
  return instance
}

/** Runs a shell script to its end and gives what it printed and how it ended. The instance is deleted. */
export async function runScript (server: TestServer, image: string, script: string, params: Partial<CreateParams> = {}): Promise<{ instance: Instance, output: string[] }> {
  return await runToEnd(server, await createShell(server, image, script, params))
}

/** Waits until an instance has stopped, reads its output, and deletes it. */
export async function runToEnd (server: TestServer, created: Instance): Promise<{ instance: Instance, output: string[] }> {
  const instance = await waitFor(server, created.id, 'Stopped')
  const output = await lines(server, created.id)
  await server.sdk.instances.delete(created.id)
  return { instance, output }
}

/** The lines that a log holds now. */
export async function lines (server: TestServer, id: string, query: { source?: 'app' | 'vmm' | 'hypeman', tail?: number } = {}): Promise<string[]> {
  const stream = await server.sdk.instances.logs(id, { tail: 10_000, ...query })
  const found: string[] = []
  for await (const line of stream) found.push(line)
  return found
}

/** Follows the program's output until a line that `wanted` accepts has come; resolves to everything up to it. */
export async function follow (server: TestServer, id: string, wanted: (line: string) => boolean): Promise<string[]> {
  const stream = await server.sdk.instances.logs(id, { follow: true, tail: 10_000 })
  const found: string[] = []
  for await (const line of stream) {
    found.push(line)
    if (wanted(line)) {
      stream.controller.abort()
      return found
    }
  }
  throw new Error(`the output ended before the line came: ${found.join('\n')}`)
}
