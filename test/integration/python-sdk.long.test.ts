// The official Python SDK against the real server with real machines: every method that is served, each answer checked against the SDK's models.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { pythonWith } from '../helpers/python.ts'
import { startSdkServer } from '../helpers/sdk-server.ts'
import { skipReason } from '../plugins/ingress/stage.ts'

const WITNESS = join(packageRoot, 'test/integration/python-sdk/witness.py')
/** calls that the witness makes, and no fewer; it looks itself that no method is left out */
const CALLS = 77

async function main (): Promise<void> {
  const python = await pythonWith(t, 'hypeman==0.28.0')
  const { server, registry } = await startSdkServer(t)
  const image = await push(server, await busyboxImage(), 'py/busybox:latest')
  await t.test('every method of the Python SDK gets an answer that fits its models', { timeout: 900_000 }, async (t) => {
    const child = spawn(python, [WITNESS], {
      env: { PATH: process.env['PATH'], BERTH_URL: server.url, BERTH_KEY: server.key, IMAGE: image, TARGET: registry },
      stdio: ['ignore', 'pipe', 'inherit']
    })
    t.teardown(() => { child.kill() })
    const ended = once(child, 'close')
    let calls = 0
    for await (const line of createInterface(child.stdout)) {
      const { call, error }: { readonly call: string, readonly error: string | null } = JSON.parse(line)
      t.equal(error, null, call)
      calls++
    }
    t.same(await ended, [0, null], 'it came to its end')
    t.ok(calls >= CALLS, `it made ${calls} calls`)
  })
}

const reason = skipReason() || skipWithout('builds', 'devices', 'pushes', 'resources', 'snapshots', 'volumes')
if (reason === false) await main()
else t.plan(0, reason)
