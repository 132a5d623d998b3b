// A client that a common generator makes of GET /openapi.json, through a whole scenario against a real server with a real machine.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import t from 'tap'
import { packageRoot } from '../../core/package-root.ts'
import { createHostCommands } from '../../core/process/run.ts'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { pythonWith } from '../helpers/python.ts'
import { startTestServer } from '../helpers/server.ts'
import { skipFile } from '../helpers/skip-file.ts'

await skipFile(skipWithout('snapshots', 'volumes'))
const GENERATOR = 'openapi-python-client==0.29.1'
const SCENARIO = join(packageRoot, 'test/integration/generated-client/scenario.py')
/** steps of the scenario, and no fewer */
const STEPS = 32

t.test('a generated client comes through a whole scenario, and reads every answer by its model', { timeout: 900_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'berth-client-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  const [python, server] = await Promise.all([pythonWith(t, GENERATOR), startTestServer(t, { plugins: { builds: { config: { prepare: false } } } })])
  const image = await push(server, await busyboxImage(), 'team/busybox:latest')
  const document = join(folder, 'openapi.json')
  await writeFile(document, await (await fetch(`${server.url}/openapi.json`)).text())

  const { stdout, stderr } = await createHostCommands().run(join(dirname(python), 'openapi-python-client'), ['generate', '--path', document, '--output-path', join(folder, 'berth_client'), '--meta', 'none'], { timeoutMs: 300_000 })
  // Other bodies than JSON and forms it leaves out, and says so.
  const left = `${stdout}\n${stderr}`.split('\n').filter((line) => /^(?:WARNING|ERROR) /.test(line) && !line.startsWith('WARNING parsing POST /volumes/from-archive'))
  t.same(left, [], 'the generator understands all of the document')

  const child = spawn(python, [SCENARIO], { env: { PATH: process.env['PATH'], PYTHONPATH: folder, BERTH_URL: server.url, BERTH_KEY: server.key, IMAGE: image }, stdio: ['ignore', 'pipe', 'inherit'] })
  t.teardown(() => { child.kill() })
  const ended = once(child, 'close')
  let steps = 0
  for await (const line of createInterface(child.stdout)) {
    t.comment(line)
    steps++
  }
  t.same(await ended, [0, null], 'it came to its end')
  t.ok(steps >= STEPS, `${steps} steps`)
})
