// Compose files against the real server with real VMs.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { skipWithout } from '../../setup/structure/deleted.ts'
import { testFolder } from '../helpers/folder.ts'
import { busyboxImage, push } from '../helpers/images.ts'
import { startTestServer } from '../helpers/server.ts'
import { skipFile } from '../helpers/skip-file.ts'
import { berth as plain, type Ended } from './berth.ts'

await skipFile(skipWithout('snapshots', 'volumes'))
const server = await startTestServer(t)
const image = await push(server, await busyboxImage(), 'cli/busybox:latest')
const file = join(testFolder(t), 'compose.yaml')

const berth = async (...args: readonly string[]): Promise<Ended> => await plain(args, { env: { BERTH_URL: server.url, BERTH_TOKEN: server.key } })
const compose = async (name: string, ...args: readonly string[]): Promise<Ended> => await berth('compose', name, '-f', file, ...args)
const ids = async (): Promise<Map<string, string>> => new Map((await compose('ps', '--format', '{{name}} {{id}}')).out.trim().split('\n').map((line) => line.split(' ') as [string, string]))
const actions = async (): Promise<string[]> => (JSON.parse((await compose('plan', '--json')).out) as { service: string, action: string }[]).map(({ service, action }) => `${service} ${action}`)

const LIMITS = 'deploy: {resources: {limits: {cpus: 1, memory: 128M}}}'
const shop = (message: string, more = ''): string => `name: shop
services:
  web:
    image: ${image}
    command: [sh, -c, 'echo ${message}; while :; do sleep 1; done']
    depends_on: {db: {condition: service_healthy}}
    ${LIMITS}
  db:
    image: ${image}
    command: [sh, -c, 'echo stored >> /data/file; touch /tmp/ready; while :; do sleep 1; done']
    healthcheck: {test: [CMD, test, -e, /tmp/ready], interval: 1s}
    volumes: [data:/data]
    ${LIMITS}
${more}volumes:
  data: {x-berth: {size: 64MB}}
`

t.test('up makes what is described in its order, and a second time nothing', async (t) => {
  await writeFile(file, shop('one'))
  t.strictSame(await actions(), ['db create', 'web create'])
  t.match(await compose('up', '--wait'), { code: 0, out: 'shop-db: made\nshop-web: made\n', error: '' })
  t.match((await compose('ps')).out, /db\s+shop-db\s+Running\s+healthy[^\n]*\nweb\s+shop-web\s+Running/)
  t.strictSame(await actions(), ['db keep', 'web keep'])
  const before = await ids()
  t.match(await compose('up'), { code: 0, out: 'shop-db: as it was\nshop-web: as it was\n' })
  t.strictSame(await ids(), before)
  t.match((await compose('logs', 'web')).out, /^web \| one$/m)
})

t.test('what has changed alone is made anew, and its neighbours and volumes stay', async (t) => {
  const before = await ids()
  await writeFile(file, shop('two'))
  t.strictSame(await actions(), ['db keep', 'web replace'])
  t.match(await compose('up', '--wait'), { code: 0, out: 'shop-db: as it was\nshop-web: made anew\n' })
  const after = await ids()
  t.equal(after.get('shop-db'), before.get('shop-db'))
  t.not(after.get('shop-web'), before.get('shop-web'))
  t.match(await berth('stop', 'shop-db'), { code: 0 })
  t.match(await berth('standby', 'shop-web'), { code: 0 })
  t.strictSame(await actions(), ['db start', 'web wake'])
  t.match(await compose('up', '--wait'), { code: 0, out: 'shop-db: started\nshop-web: woken\n' })
  t.match(await berth('exec', 'shop-db', 'cat', '/data/file'), { code: 0, out: 'stored\nstored\n' })
})

t.test('a service starts from a snapshot, and what is not of the project is left alone', async (t) => {
  t.match(await berth('fork', '--from-running', 'shop-web', 'twin'), { code: 0 })
  t.match(await berth('snapshot', 'create', 'shop-web', '--name', 'warm'), { code: 0 })
  await writeFile(file, shop('two', '  copy: {x-berth: {snapshot: warm}, labels: {kind: copy}}\n'))
  t.match(await compose('up'), { code: 0, out: /shop-copy: made\n/ })
  t.match(await berth('inspect', 'shop-copy', '--format', '{{tags.kind}} {{state}}'), { code: 0, out: /^copy (?:Running|Initializing)\n$/ })
  t.match(await compose('up'), { code: 0, out: /shop-copy: as it was\n/ })
  await writeFile(file, shop('two'))
  t.match(await compose('up'), { code: 0, error: /shop-copy is of this project, and the file does not name it/ })
  t.match(await compose('up', '--remove-orphans'), { code: 0 })
  t.match(await berth('inspect', 'shop-copy'), { code: 3 })
})

t.test('down deletes what it owns and nothing else', async (t) => {
  t.match(await compose('down'), { code: 0, out: 'shop-web\nshop-db\n' })
  t.equal((await berth('ps', '-a', '--format', '{{name}}')).out, 'twin\n')
  t.match((await berth('volume', 'ls')).out, /shop_data/)
  t.match(await compose('down', '--volumes'), { code: 0, out: 'shop_data\n' })
  await writeFile(file, `name: tw\nservices:\n  in: {image: ${image}, command: "true", ${LIMITS}}\n`)
  t.match(await berth('create', '--name', 'tw-in', '--size', '128MB', image, 'true'), { code: 0 })
  t.match(await compose('up'), { code: 5, error: /there is an instance tw-in that is not of this project/ })
  t.match(await berth('rm', '-f', 'tw-in', 'twin'), { code: 0 })
})
