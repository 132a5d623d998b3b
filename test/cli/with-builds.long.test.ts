// Builds by the command and by a Compose file, in real VMs.
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { eventually } from '../helpers/eventually.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'
import { shareOfCommit } from '../../setup/test/share-of-commit.ts'
import { berth as plain, type Ended } from './berth.ts'

t.setTimeout(1_500_000)
const server = await startTestServer(t, { plugins: { builds: { config: { concurrency: 1, memory: '1GB', disk: '4GB', builderDisk: '4GB' } } } })
await push(server, await busyboxImage(), 'bases/busybox:latest')
const folder = testFolder(t, { web: {}, endless: { Dockerfile: 'FROM bases/busybox\nRUN while :; do echo working; sleep 1; done\n' } })
const file = join(folder, 'compose.yaml')
const berth = async (...args: readonly string[]): Promise<Ended> => await plain(args, { env: { BERTH_URL: server.url, BERTH_TOKEN: server.key } })
const compose = async (name: string, ...args: readonly string[]): Promise<Ended> => await berth('compose', name, '-f', file, ...args)
const builds = async (): Promise<string[]> => (await berth('builds', 'ls', '-q')).out.split('\n').filter((id) => id !== '')

/** The context of the service's image. */
async function write (message: string): Promise<void> {
  await writeFile(join(folder, 'web/message'), `${message}\n`)
  await writeFile(join(folder, 'web/Dockerfile'), 'FROM bases/busybox\nCOPY message /message\nCMD ["/bin/sh", "-c", "cat /message; while :; do sleep 1; done"]\n')
}

/** Each takes a build or two, so a commit has one of them. */
const tests: ReadonlyArray<readonly [string, (t: Test) => Promise<void>]> = [
  ['a service is built and runs, its changed context is built anew, and down takes it away', services],
  ['a build that runs is followed, canceled by its id, and says so', cancels]
]
for (const [name, run] of shareOfCommit(tests, tests.length)) t.test(name, { timeout: 1_200_000 }, run)

async function services (t: Test): Promise<void> {
  await mkdir(join(folder, 'web'), { recursive: true })
  await write('one')
  await writeFile(file, 'name: built\nservices:\n  web:\n    build: ./web\n    deploy: {resources: {limits: {cpus: 1, memory: 128M}}}\n')
  const made = await compose('up', '--wait')
  t.match(made, { code: 0, out: 'built-web: made\n' }, made.error)
  t.match(await berth('exec', '--wait', '60s', 'built-web', 'cat', '/message'), { code: 0, out: 'one\n' })
  const [first] = await builds()
  t.match(await berth('builds', 'logs', first ?? ''), { code: 0, out: /COPY message/ })
  t.match(await compose('up'), { code: 0, out: 'built-web: as it was\n' })
  t.equal((await builds()).length, 1, 'nothing was built')
  await write('two')
  const again = await compose('up', '--build', '--wait')
  t.match(again, { code: 0, out: 'built-web: made anew\n' }, again.error)
  t.equal((await builds()).length, 2)
  t.match(await berth('exec', '--wait', '60s', 'built-web', 'cat', '/message'), { code: 0, out: 'two\n' })
  t.match(await compose('down'), { code: 0, out: 'built-web\n' })
  t.match(await berth('ps', '-a', '-q'), { code: 0, out: '' })
}

async function cancels (t: Test): Promise<void> {
  const { code, out, error } = await berth('build', '-d', join(folder, 'endless'))
  t.equal(code, 0, error)
  const id = out.trim()
  const followed = berth('builds', 'logs', '-f', id)
  await eventually('it works', async () => (await berth('builds', 'logs', id)).out.includes('working'), { limitMs: 500_000, pollMs: 1000, explain: async () => (await berth('builds', 'logs', id)).out })
  t.match(await berth('builds', 'cancel', id, 'nosuch'), { code: 3, out: `${id}\n`, error: /nosuch/ })
  t.match((await followed).out, /working/)
  t.match(await berth('builds', 'ls', '--format', '{{id}} {{status}}'), { out: new RegExp(`^${id} cancell?ed$`, 'm') })
}
