// While no collector is configured nothing of OpenTelemetry is loaded: seen in a process of its own, in which nothing else could have loaded it. But for its types and no-ops,
// @opentelemetry/api, which prom-client loads.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import t from 'tap'

const run = promisify(execFile)

const PROGRAM = `
  import { createRequire } from 'node:module'
  import { mkdtemp, rm } from 'node:fs/promises'
  import { tmpdir } from 'node:os'
  import { join } from 'node:path'
  import { buildApp } from '${new URL('../../../core/app.js', import.meta.url).href}'
  import { plugin } from '${new URL('../../../plugins/tracing/index.js', import.meta.url).href}'
  const folder = await mkdtemp(join(tmpdir(), 'berth-tracing-test-'))
  const config = process.argv[1] === 'none' ? {} : { endpoint: process.argv[1] }
  const app = await buildApp({
    server: { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', metrics: { listen: '127.0.0.1:0' } }, plugins: { tracing: { enabled: process.argv[2] === 'on', config } }
  }, { environment: {}, builtIns: new URL('file:///nonexistent/'), plugins: [plugin], logStream: { write () {} } })
  await app.start()
  await fetch(app.address() + '/health')
  // The packages are CommonJS, which one table of the process has all of.
  const loaded = Object.keys(createRequire(import.meta.url).cache).filter(path => path.includes('@opentelemetry/') && !path.includes('@opentelemetry/api/'))
  await app.stop()
  await rm(folder, { recursive: true })
  process.stdout.write(JSON.stringify(loaded))
`

async function loadedWith (endpoint: string, enabled: 'on' | 'off'): Promise<unknown> {
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', PROGRAM, endpoint, enabled])
  return JSON.parse(stdout)
}

t.test('nothing of OpenTelemetry is loaded without an endpoint, nor while the plugin is off', async (t) => {
  t.same(await loadedWith('none', 'on'), [])
  t.same(await loadedWith('http://127.0.0.1:9/v1/traces', 'off'), [])
})

t.test('with one it is, which proves that the look finds it', async (t) => {
  t.match(await loadedWith('http://127.0.0.1:9/v1/traces', 'on'), [/@opentelemetry/])
})
