// The whole server as a user without rights: what works there does, and GET /plugins says of the rest why it does not.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import { createApi, type Api } from '../../setup/server/api.ts'
import { DELETED } from '../../setup/structure/deleted.ts'

const main = fileURLToPath(new URL('../../core/main.js', import.meta.url))
const isRoot = process.getuid?.() === 0
const KEY = 'the-key-of-this-test'
/** no entry of /etc/passwd has it */
const USER = 1899999994
const become = isRoot ? ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups', '--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--pdeathsig=TERM', '--'] : []
const [program = process.execPath, ...before] = [...become, process.execPath]
const skip = spawnSync(program, [...before, '-e', 'require("node:fs").accessSync(process.argv[1])', main]).status === 0 ? false : 'another user cannot be become here, or does not reach this checkout'

async function start (t: Test): Promise<Api> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-unprivileged-'))
  await chmod(folder, 0o711)
  const config = join(folder, 'berth.yaml')
  await writeFile(config, JSON.stringify({
    server: { dataDir: join(folder, 'data'), listen: '127.0.0.1:0', stopInstancesOnExit: true, metrics: { listen: '127.0.0.1:0' } },
    plugins: { instances: { config: { templates: { enabled: false } } } }
  }))
  if (isRoot) await chown(folder, USER, USER)
  const child = spawn(program, [...before, main, 'serve', '--config', config], { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'], env: { PATH: process.env['PATH'], HOME: folder, BERTH_API_KEY: KEY } })
  const ended = once(child, 'exit')
  t.teardown(async () => {
    child.kill('SIGTERM')
    await ended
    await rm(folder, { recursive: true })
  })
  const lines = createInterface({ input: child.stdout })
  const url = await new Promise<string>((resolve, reject) => {
    lines.on('line', (text) => {
      const line = JSON.parse(text) as { msg?: string, url?: string }
      if (line.msg === 'listening' && line.url !== undefined) resolve(line.url)
    })
    void ended.then(() => reject(new Error('the server ended')))
  })
  return createApi(url, KEY)
}

t.test('without rights, GET /plugins says of each part that is off why', { skip }, async (t) => {
  const api = await start(t)
  const all = await api.call('GET', '/plugins') as readonly { id: string, state: string, reason: string | null }[]
  const off = Object.fromEntries(all.filter(({ state }) => state !== 'started').map(({ id, state, reason }) => [id, `${state}: ${reason ?? ''}`]))
  t.equal(off['networking'], 'skipped: networks for guests need root')
  t.equal(off['egress'], DELETED.includes('egress') ? undefined : 'skipped: the plugin networking does not run: without a network for guests there is no way out to mediate')
  // Without user namespaces images cannot be unpacked, and nothing that needs one runs; each says so.
  const needed = off['images'] === undefined ? ['hypervisor-qemu', 'guest', 'registry', 'instances', 'volumes', 'snapshots'] : ['hypervisor-qemu', 'guest', 'registry']
  for (const id of needed) t.equal(off[id], undefined, id)
  for (const [id, said] of Object.entries(off)) t.match(said, /^[a-z]+: ./, id)
})
