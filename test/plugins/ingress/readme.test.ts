// The commands of the READMEs of both ways in, run as they stand there.
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { packageRoot } from '../../../core/package-root.ts'
import { createHostCommands } from '../../../core/process/run.ts'
import { ADMIN_KEY } from '../../core/bare-app.ts'
import { startPorts } from '../ports/app.ts'
import { startIngress } from './app.ts'
import { skipReason } from './stage.ts'

async function shellLines (plugin: string): Promise<string> {
  const text = await readFile(join(packageRoot, 'plugins', plugin, 'README.md'), 'utf8')
  const block = /^```sh\n([\s\S]*?)^```$/m.exec(text)?.[1]
  if (block === undefined) throw new Error(`the README of ${plugin} has no commands`)
  return block
}

/** @param curlrc what stands for names and ports that a test has not. @returns what they printed */
async function runLines (t: Test, lines: string, url: string, curlrc: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-readme-'))
  t.teardown(async () => { await rm(folder, { recursive: true, force: true }) })
  await writeFile(join(folder, '.curlrc'), `silent\nshow-error\nfail-with-body\nnoproxy = "*"\n${curlrc}`)
  await writeFile(join(folder, 'berth'), `#!/bin/sh\nexec ${process.execPath} '${join(packageRoot, 'dist/cli/main.js')}' "$@"\n`, { mode: 0o755 })
  const script = `cd '${folder}'\nA='Authorization: Bearer ${ADMIN_KEY}' URL=${url}\n${lines}`
  const { stdout } = await createHostCommands().run('env', [`CURL_HOME=${folder}`, `HOME=${folder}`, `PATH=${folder}:${process.env['PATH'] ?? ''}`, `BERTH_URL=${url}`, `BERTH_TOKEN=${ADMIN_KEY}`, 'sh', '-e', '-c', script], { timeoutMs: 120_000 })
  return stdout
}

t.test('the commands of ingress', { skip: skipReason() || (existsSync('/usr/bin/curl') ? false : 'the command curl is missing') }, async (t) => {
  const app = await startIngress(t, { listen: true })
  await app.makeGuest('web')
  const { address, https } = app.place
  const said = await runLines(t, await shellLines('ingress'), app.app.address(), `connect-to = "shop.example.com:443:${address}:${https}"\n`)
  t.match(said, /"served":true[\s\S]*web \/[\s\S]*"entries":\[/)
})

t.test('the commands of ports', { skip: existsSync('/usr/bin/curl') ? false : 'the command curl is missing' }, async (t) => {
  const app = await startPorts(t, { listen: true })
  const free = createServer().listen(0, '127.0.0.1')
  await once(free, 'listening')
  const bound = free.address()
  free.close()
  const port = typeof bound === 'object' && bound !== null ? bound.port : 0
  const said = await runLines(t, (await shellLines('ports')).replace('8080', String(port)), app.app.address(), '')
  t.match(said, new RegExp(`"host_port":${port}[\\s\\S]*"protocol":"udp"`))
})
