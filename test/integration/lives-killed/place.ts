// A server that dies at its steps, for tests of what it does by itself with real machines.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { argumentsOf, processIds } from '../../../core/process/find.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { busyboxImage, push } from '../../helpers/images.ts'
import { DYING } from '../../helpers/killed-at-steps.ts'
import { ownNetwork } from '../../helpers/own-network.ts'
import { startTestServer, type TestServer } from '../../helpers/server.ts'

/** Ends when it is told to. What it is told it forgets with its VM. */
export const TOLD = 'while [ ! -e /dev/shm/end ]; do sleep 0.2; done; exit 3'

export interface Place { readonly server: TestServer, readonly image: string }

/** With a network, whose namespace goes with the test. */
export async function startPlace (t: Test): Promise<Place> {
  const { namespace, cidr } = ownNetwork()
  t.teardown(async () => { if (existsSync(`/run/netns/${namespace}`)) await createHostCommands().run('ip', ['netns', 'delete', namespace]) })
  const server = await startTestServer(t, {
    nodeArguments: DYING,
    plugins: { networking: { config: { uplink: 'none', cidr, namespace } } }
  })
  return { server, image: await push(server, await busyboxImage(), 'lives/busybox:latest') }
}

/** How many processes of a VMM an instance has. */
export async function vms (server: TestServer, id: string): Promise<number> {
  const commandLines = await Promise.all((await processIds()).map(async (pid) => (await argumentsOf(pid)).join(' ')))
  return commandLines.filter((words) => words.startsWith('qemu-system') && words.includes(join(server.dataDir, 'instances', id))).length
}

/** Nothing is left, also of what a server that died held. */
export async function isEmpty (t: Test, { server, image }: Place): Promise<void> {
  await t.test('nothing is left', async (t) => {
    t.same(await server.sdk.instances.list(), [])
    await t.resolves(server.sdk.images.delete(image), 'nobody holds the image any more')
  })
}
