// Everything that is there at one moment: what the API says, what the database says, and what the host has.
import { join } from 'node:path'
import { query } from '../stage/database.ts'
import { tapOf } from '../../../plugins/networking/names.ts'
import type { Row, World } from '../world.ts'
import { halves, namesIn } from './files.ts'
import { groupsOfVms } from './groups.ts'
import { guestLinks, leadingPorts, locks, loopDevices, mounts, ruleElements, type Lock } from './host.ts'
import { processes, type Process } from './processes.ts'

const TABLES = ['instances_instances', 'snapshots_snapshots', 'volumes_volumes', 'volumes_attachments', 'images_contents', 'images_tags', 'images_holders', 'networking_addresses', 'egress_vms', 'ports_ports', 'ingress_ingresses', 'ingress_claims', 'webhooks_webhooks', 'builds_builds', 'builds_builders', 'resources_claims'] as const
/** how the names of VMs begin that the server keeps for itself */
const SPARE = '~'
export type Table = typeof TABLES[number]

export interface Sight {
  readonly instances: readonly Row[]
  readonly snapshots: readonly Row[]
  readonly volumes: readonly Row[]
  readonly images: readonly Row[]
  readonly ports: readonly Row[]
  readonly ingresses: readonly Row[]
  readonly webhooks: readonly Row[]
  readonly builds: readonly Row[]
  readonly builders: readonly Row[]
  /** those in standby whose VM is still there, paused */
  readonly kept: readonly Row[]
  /** VMs that the server keeps ready, which no list has */
  readonly spares: readonly Row[]
  readonly rows: Readonly<Record<Table, readonly Row[]>>
  readonly processes: readonly Process[]
  readonly links: readonly string[]
  readonly rules: ReadonlyMap<string, readonly string[]>
  readonly mounts: readonly string[]
  readonly loops: readonly string[]
  readonly locks: readonly Lock[]
  /** ports of the host that lead to guests, as `tcp 80` */
  readonly leading: readonly string[]
  /** for each hierarchy the control groups of VMs */
  readonly groups: ReadonlyMap<string, readonly string[]>
  readonly halves: readonly string[]
  /** names in the folders of the data folder */
  readonly folders: Readonly<Record<'instances' | 'snapshots' | 'disks' | 'uses' | 'images', readonly string[]>>
}

export async function look (world: World): Promise<Sight> {
  const { dataDir } = world.server.now
  const list = async (path: string): Promise<readonly Row[]> => (await world.call('GET', path)).items()
  const [instances, snapshots, volumes, images] = [await list('/instances'), await list('/snapshots'), await list('/volumes'), await list('/images')]
  const [ports, ingresses, webhooks, builds, builders] = [await list('/ports'), await list('/ingresses'), await list('/webhooks'), await list('/builds'), await list('/builders')]
  const all = await query(world.stage.database.url, async (database) => Object.fromEntries(await Promise.all(TABLES.map(async (table) => [table, await database(table).select()])))) as Sight['rows']
  const isSpare = (row: Row): boolean => text(row, 'name').startsWith(SPARE)
  const rows = { ...all, instances_instances: all.instances_instances.filter((row) => !isSpare(row)) }
  // What way out an instance has stands in its row alone.
  const modes = new Map(rows.instances_instances.map((row) => [row['id'], (JSON.parse(text(row, 'spec')) as { egress?: { mode: string } }).egress?.mode ?? 'none']))
  const withModes = instances.map((each) => ({ ...each, mode: modes.get(each['id']) }))
  return {
    instances: withModes, snapshots, volumes, images, ports, ingresses, webhooks, builds, builders, rows,
    kept: await keptOf(world, withModes),
    spares: all.instances_instances.filter(isSpare),
    processes: await processes(),
    links: await guestLinks(world.stage.namespace),
    rules: await ruleElements(world.stage.namespace),
    mounts: await mounts(),
    loops: await loopDevices(world.stage.disk),
    locks: await locks(world.stage.disk),
    leading: await leadingPorts(),
    groups: await groupsOfVms(world.stage.groups),
    halves: await halves(dataDir),
    folders: {
      instances: await namesIn(join(dataDir, 'instances')), snapshots: await namesIn(join(dataDir, 'snapshots')), images: (await namesIn(join(dataDir, 'images'))).filter((name) => /^[0-9a-f]{64}$/.test(name)),
      disks: await namesIn(join(dataDir, 'volumes/disks')), uses: await namesIn(join(dataDir, 'volumes/uses'))
    }
  }
}

async function keptOf (world: World, instances: readonly Row[]): Promise<readonly Row[]> {
  const resting = instances.filter((each) => text(each, 'state') === 'Standby')
  const stats = await Promise.all(resting.map(async (each) => await world.call('GET', `/instances/${text(each, 'id')}/stats`)))
  return resting.filter((_each, index) => (stats[index]?.body as Row | undefined)?.['vm_kept'] === true)
}

export function text (row: Row, name: string): string {
  const value = row[name]
  return typeof value === 'string' ? value : String(value ?? '')
}

export function networkOf (instance: Row): { readonly enabled: boolean, readonly ip: string, readonly tap: string, readonly mode: string } {
  const network = (instance['network'] ?? {}) as { enabled?: boolean, ip?: string }
  return { enabled: network.enabled === true, ip: network.ip ?? '', tap: tapOf(text(instance, 'id')), mode: text(instance, 'mode') }
}
