// Everything that is there at one moment: what the API says, what the database says, and what the host has.
import { join } from 'node:path'
import { query } from '../stage/database.ts'
import { tapOf } from '../../../plugins/networking/names.ts'
import type { Row, World } from '../world.ts'
import { halves, namesIn } from './files.ts'
import { controlGroups, guestLinks, locks, loopDevices, mounts, ruleElements, type Lock } from './host.ts'
import { processes, type Process } from './processes.ts'

const TABLES = ['instances_instances', 'snapshots_snapshots', 'volumes_volumes', 'volumes_attachments', 'images_contents', 'images_tags', 'images_holders', 'networking_addresses', 'egress_vms'] as const
export type Table = typeof TABLES[number]

export interface Sight {
  readonly instances: readonly Row[]
  readonly snapshots: readonly Row[]
  readonly volumes: readonly Row[]
  readonly images: readonly Row[]
  readonly rows: Readonly<Record<Table, readonly Row[]>>
  readonly processes: readonly Process[]
  readonly links: readonly string[]
  readonly rules: ReadonlyMap<string, readonly string[]>
  readonly mounts: readonly string[]
  readonly loops: readonly string[]
  readonly locks: readonly Lock[]
  readonly groups: readonly string[]
  readonly halves: readonly string[]
  /** names in the folders of the data folder */
  readonly folders: Readonly<Record<'instances' | 'snapshots' | 'disks' | 'uses' | 'images', readonly string[]>>
}

export async function look (world: World): Promise<Sight> {
  const { dataDir } = world.server.now
  const list = async (path: string): Promise<readonly Row[]> => (await world.call('GET', path)).items()
  const [instances, snapshots, volumes, images] = [await list('/instances'), await list('/snapshots'), await list('/volumes'), await list('/images')]
  const rows = await query(world.stage.database.url, async (database) => Object.fromEntries(await Promise.all(TABLES.map(async (table) => [table, await database(table).select()])))) as Sight['rows']
  // What way out an instance has stands in its row alone.
  const modes = new Map(rows.instances_instances.map((row) => [row['id'], (JSON.parse(text(row, 'spec')) as { egress?: { mode: string } }).egress?.mode ?? 'none']))
  return {
    instances: instances.map((each) => ({ ...each, mode: modes.get(each['id']) })), snapshots, volumes, images, rows,
    processes: await processes(),
    links: await guestLinks(world.stage.namespace),
    rules: await ruleElements(world.stage.namespace),
    mounts: await mounts(),
    loops: await loopDevices(world.stage.disk),
    locks: await locks(world.stage.disk),
    groups: await controlGroups(),
    halves: await halves(dataDir),
    folders: {
      instances: await namesIn(join(dataDir, 'instances')), snapshots: await namesIn(join(dataDir, 'snapshots')), images: (await namesIn(join(dataDir, 'images'))).filter((name) => /^[0-9a-f]{64}$/.test(name)),
      disks: await namesIn(join(dataDir, 'volumes/disks')), uses: await namesIn(join(dataDir, 'volumes/uses'))
    }
  }
}

export function text (row: Row, name: string): string {
  const value = row[name]
  return typeof value === 'string' ? value : String(value ?? '')
}

export function networkOf (instance: Row): { readonly enabled: boolean, readonly ip: string, readonly tap: string, readonly mode: string } {
  const network = (instance['network'] ?? {}) as { enabled?: boolean, ip?: string }
  return { enabled: network.enabled === true, ip: network.ip ?? '', tap: tapOf(text(instance, 'id')), mode: text(instance, 'mode') }
}
