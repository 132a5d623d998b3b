// Rows of each kind of resource that has a list, as many as a server has after years.
import type { Knex } from 'knex'

type Rows = (index: number, hostId: string, id: (index: number) => string) => Record<string, unknown>

const BATCH = 500
const FIRST_LETTER = 'a'
const FIRST = Date.UTC(2026, 0, 1)

const idFrom = (first: string) => (index: number): string => `${first}${index.toString(36).padStart(23, '0')}`
const digest = (index: number): string => `sha256:${index.toString(16).padStart(64, '0')}`
const at = (index: number): number => FIRST + index * 1000
const tags = (index: number): string => JSON.stringify({ team: `team-${index % 100}`, env: 'prod' })

const TABLES: Readonly<Record<string, Rows>> = {
  snapshots_snapshots: (index, hostId, id) => ({
    id: id(index), host_id: hostId, status: 'ready', kind: 'Stopped', name: `snapshot-${index}`, source_id: id(index % 50), source_name: `web-${index % 50}`, hypervisor: 'qemu', image_digest: digest(1),
    copy: '{}', tags: tags(index), scheduled: 0, created_at: at(index), disk_bytes: 4096, compression_state: 'none'
  }),
  volumes_volumes: (index, hostId, id) => ({ id: id(index), host_id: hostId, status: 'ready', name: `volume-${index}`, name_key: `volume-${index}`, size_mib: 1024, tags: tags(index), created_at: at(index), generation: 0, turns: 0 }),
  builds_builds: (index, hostId, id) => ({ id: id(index), host_id: hostId, status: index % 10 === 0 ? 'failed' : 'ready', provenance: '{}', tags: tags(index), created_at: at(index), started_at: at(index), completed_at: at(index) }),
  images_tags: (index, hostId, id) => ({ id: id(index), host_id: hostId, name: `registry.example.com/team/image-${index}:latest`, repository: `registry.example.com/team/image-${index}`, digest: digest(index), state: 'resolved', tags: tags(index), created_at: at(index) }),
  images_contents: (index, hostId, id) => ({ id: id(index), host_id: hostId, digest: digest(index), repository: `registry.example.com/team/image-${index}`, status: 'ready', platform: 'linux/amd64', layer_bytes: 4096, recompress: 0, size_bytes: 4096, config: '{"env":{},"stopSignal":15}', created_at: at(index) }),
  pushes_pushes: (index, hostId, id) => ({ id: id(index), host_id: hostId, status: 'pushed', image: 'docker.io/library/a:latest', digest: digest(index), origins: '[]', target: 'registry.example.com/a:latest', destination: 'registry.example.com/a:latest', insecure: 0, is_lent: 0, created_at: at(index), completed_at: at(index) }),
  core_api_keys: (index, _hostId, id) => ({ id: id(index), name: `key-${index}${id(0).at(0) === FIRST_LETTER ? '' : '-other'}`, hash: `${id(index)}${'0'.repeat(40)}`, scopes: '["instance:read"]', created_at: at(index) })
}

/** Adds rows to the tables of the plugins that are present. @param firstLetter of their ids, which are unique on all hosts */
export async function store (database: Knex, hostId: string, count: number, firstLetter = FIRST_LETTER): Promise<void> {
  for (const [table, rowOf] of Object.entries(TABLES)) {
    if (!await database.schema.hasTable(table)) continue
    await database.transaction(async (trx) => {
      for (let from = 0; from < count; from += BATCH) await trx(table).insert(Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => rowOf(from + index, hostId, idFrom(firstLetter))))
    })
  }
}

/** A row in the middle. */
export const middle = (count: number): string => idFrom(FIRST_LETTER)(Math.floor(count / 2))
