// Builds what is tortured: a small disk, wrapped tools, a far side, a database, a server, and an image.
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import Hypeman from '@onkernel/hypeman'
import { createHostCommands } from '../../../core/process/run.ts'
import { busyboxImage, push } from '../../helpers/images.ts'
import { installedProgram } from '../../helpers/installed-program.ts'
import { NAME_SERVER } from '../../integration/egress-enforcement/far/contract.ts'
import { openFar, WAN } from '../../integration/egress-enforcement/far/far.ts'
import { Model } from '../model.ts'
import { World } from '../world.ts'
import { onMariadb, onSqlite } from './database.ts'
import { startReceiver } from './receiver.ts'
import { TorturedServer } from './server.ts'
import { removeGroups } from '../census/groups.ts'
import { wrapTools } from './tools.ts'

const commands = createHostCommands()
const GUEST = 'torture/guest'
/** what it is called wherever the server listens */
const GUEST_IMAGE = `localhost/${GUEST}:latest`
const NAMESPACE = 'tortured'
const CIDR = '10.130.0.0/24'
/** Nobody else is in this network namespace. */
const LISTEN = '127.0.0.1:8080'
const METRICS_LISTEN = '127.0.0.1:9464'
export const METRICS = `http://${METRICS_LISTEN}/metrics`
export const INGRESS_PORT = 8088
const DISK = 'size=2000M,nr_inodes=8000,mode=711'
/** What may be promised of the small disk; it is sparse. */
const CAPACITY = '200GB'
const PATIENCE = { bootTimeout: '60s', imageTimeout: '60s' }

export interface StageOptions {
  readonly hasDatabaseServer: boolean
  /** whether VMs are made of templates, and some are kept ready */
  readonly hasTemplates: boolean
}

/** @param folder an empty one; @param atEnd takes what undoes a step */
export async function buildStage (folder: string, { hasDatabaseServer, hasTemplates }: StageOptions, atEnd: (work: () => unknown) => void): Promise<World> {
  const serverFolder = join(folder, 'server')
  const disk = join(serverFolder, 'data')
  await mkdir(disk, { recursive: true })
  for (const each of [folder, serverFolder]) await chmod(each, 0o711)
  await commands.run('mount', ['-t', 'tmpfs', '-o', DISK, 'tmpfs', disk])
  const far = await openFar({ teardown: atEnd })
  const roots = join(folder, 'roots.pem')
  await writeFile(roots, far.authority)
  const database = hasDatabaseServer ? await onMariadb() : onSqlite(disk)
  atEnd(async () => { await database.stop() })
  const receiver = await startReceiver()
  atEnd(() => { receiver.close() })
  const groups = `/${basename(folder)}`
  atEnd(async () => { await removeGroups(groups) })
  const toolOrders = await wrapTools(folder)
  const server = new TorturedServer({
    folder: serverFolder,
    logLevel: 'debug',
    server: { listen: LISTEN, metrics: { enabled: true, listen: METRICS_LISTEN } },
    ...hasDatabaseServer ? { database: { url: database.url } } : {},
    plugins: {
      guest: { config: { kernelHeaders: false } },
      images: { config: { minFree: '20MB' } },
      instances: { config: { templates: { enabled: hasTemplates } } },
      resources: { enabled: true, config: { capacity: { cpu: 64, memory: CAPACITY, disk: CAPACITY }, cgroups: { parent: groups } } },
      builds: { config: { builderImage: GUEST_IMAGE, disk: '1GB', ...PATIENCE } },
      webhooks: { config: { allowPrivate: ['127.0.0.1/32'], retryFrom: '200ms', retryAtMost: '1s' } },
      ingress: { config: { listen: { http: [INGRESS_PORT] } } },
      // An emulated VM that has waited a second for its processor does not hang.
      'hypervisor-qemu': { config: { heartbeatDeadline: '15s' } },
      networking: { enabled: true, config: { uplink: WAN, namespace: NAMESPACE, cidr: CIDR, dns: { servers: [NAME_SERVER] } } },
      egress: { config: { roots: [roots] } }
    }
  })
  atEnd(async () => { await server.stop() })
  await server.start()
  const { url, key } = server.now
  const image = await push({ url, key, sdk: new Hypeman({ baseURL: url, apiKey: key, maxRetries: 0 }) }, await busyboxImage({ Env: ['PATH=/bin:/usr/bin'] }, await installedProgram('/usr/bin/curl')), `${GUEST}:latest`)
  return new World({ server, database, far, receiver, groups, model: new Model(), disk, toolOrders, namespace: NAMESPACE, secret: `secret${randomBytes(16).toString('hex')}`, image })
}
