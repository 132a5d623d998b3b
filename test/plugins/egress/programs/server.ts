// A server with this plugin that enforces a policy, says so, and goes on: for tests that kill it at any moment.
import { mkdirSync } from 'node:fs'
import { pino } from 'pino'
import { openDatabase } from '../../../../core/db/open.ts'
import { createTracing } from '../../../../core/tracing/tracing.ts'
import { createHostCommands } from '../../../../core/process/run.ts'
import { createSecrets } from '../../../../core/secrets/secrets.ts'
import { createProcessRegister } from '../../../../core/process/register.ts'
import { AuthorityMaker } from '../../../../plugins/egress/authority.ts'
import { ControlClient } from '../../../../plugins/egress/control/client.ts'
import { ManagedProxy } from '../../../../plugins/egress/process/managed-proxy.ts'
import { pathsOf } from '../../../../plugins/egress/process/paths.ts'
import { EgressRepository } from '../../../../plugins/egress/repository.ts'
import { Egress } from '../../../../plugins/egress/service.ts'
import type { NetworkService, ProxyPlace } from '../../../../plugins/networking/contract.ts'
import { configOf } from '../config.ts'

/** What the test knows and this program does not make itself. */
interface Given { readonly folder: string, readonly place: ProxyPlace, readonly hostId: string }

function isGiven (value: unknown): value is Given {
  return typeof value === 'object' && value !== null && 'folder' in value && 'place' in value && 'hostId' in value
}

const given: unknown = JSON.parse(process.argv[2] ?? '')
if (!isGiven(given)) throw new Error('nothing was given')
const { folder, place, hostId } = given
mkdirSync(folder, { recursive: true })
const commands = createHostCommands()
const log = pino({ level: 'silent' })
const paths = pathsOf(folder)
const client = new ControlClient(paths.controlSocket)
const network: Pick<NetworkService, 'mediate' | 'proxyPlace'> = { mediate: async () => {}, proxyPlace: async () => place }
const proxy = new ManagedProxy({ config: configOf(), dataDir: folder, paths, network, commands, processes: createProcessRegister(), client, log })
const egress = new Egress({ repository: new EgressRepository(openDatabase(`sqlite:${folder}/test.db`), hostId), secrets: createSecrets(Buffer.alloc(32, 7)), proxy, client, network, config: configOf(), tracing: createTracing(), authority: new AuthorityMaker(commands), log })
process.stdout.write('begins\n')
await egress.open()
await egress.adopt([])
const spec = egress.prepare({ mode: 'all', credentials: { API_KEY: { source: { env: 'API_KEY' }, inject: [{ as: { header: 'Authorization', format: 'Bearer ${value}' } }] } }, env: { API_KEY: 'real-value-of-a-secret' } })
for (let index = 2; ; index = 2 + (index - 1) % 200) {
  await egress.enforce(`vm-${index}`, `10.100.0.${index}`, spec)
  process.stdout.write('enforced\n')
}
