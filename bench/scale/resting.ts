// Instances at rest, as many as a server has after years: rows, addresses and folders. Every second one is in standby.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Knex } from 'knex'

const BATCH = 500
const FIRST = Date.UTC(2026, 0, 1)
const DIGEST = `sha256:${'1'.repeat(64)}`
const FILES = ['overlay.ext4', 'output.log', 'vmm.log', 'report', 'operations.log']
/** lines in its log */
const LINES = 100

export const idOf = (index: number): string => `i${index.toString(36).padStart(23, '0')}`
const isStandby = (index: number): boolean => index % 2 === 1

/** Stores them. Only the first 65,000 can have addresses in one network: the others have none. */
export async function storeResting (database: Knex, hostId: string, dataDir: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++) makeFolder(join(dataDir, 'instances', idOf(index)), isStandby(index))
  const hasNetwork = await database.schema.hasTable('networking_addresses')
  await database.transaction(async (trx) => {
    for (let from = 0; from < count; from += BATCH) {
      const indices = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => from + index)
      await trx('instances_instances').insert(indices.map((index) => rowOf(index, hostId)))
      if (hasNetwork) await trx('networking_addresses').insert(indices.map((index) => addressOf(index, hostId)))
    }
  })
}

function rowOf (index: number, hostId: string): Record<string, unknown> {
  const spec = { env: {}, hypervisor: 'qemu', vcpus: 2, memoryBytes: 2 ** 30, overlayBytes: 10 * 2 ** 30, skipGuestAgent: false, skipKernelHeaders: true, network: { enabled: true }, tags: { team: `team-${index % 100}` } }
  const at = FIRST + index * 1000
  return {
    id: idOf(index), host_id: hostId, name: `resting-${index}`, status: 'active', version: 3, created_at: at, image: 'registry.example.com/team/image:latest', image_digest: DIGEST, spec: JSON.stringify(spec),
    slot: index, handle: null, started_at: at, running_at: at, stopped_at: isStandby(index) ? null : at + 1000, standby_at: isStandby(index) ? at + 1000 : null, exit_code: isStandby(index) ? null : 0, exit_message: isStandby(index) ? null : 'it ended', life: '{}'
  }
}

function addressOf (index: number, hostId: string): Record<string, unknown> {
  const position = index + 2
  const bytes = [position >> 16, position >> 8, position].map((byte) => (byte & 255).toString(16).padStart(2, '0'))
  return { instance_id: idOf(index), host_id: hostId, position, ip: `10.100.${position >> 8}.${position & 255}`, mac: `02:00:00:${bytes.join(':')}`, created_at: FIRST + index, egress: 'none', changing: 0 }
}

function makeFolder (folder: string, standby: boolean): void {
  mkdirSync(folder, { mode: 0o711 })
  for (const name of FILES) writeFileSync(join(folder, name), name === 'output.log' ? 'a line of a program\n'.repeat(LINES) : '')
  if (!standby) return
  mkdirSync(join(folder, 'standby'), { mode: 0o700 })
  writeFileSync(join(folder, 'memory'), '')
  writeFileSync(join(folder, 'standby', 'state'), '')
  writeFileSync(join(folder, 'standby', 'image.json'), JSON.stringify({
    version: 1,
    image: { driver: 'qemu', version: 1, vmmVersion: '7.2', key: 'key', shape: {}, vcpus: 2, memoryBytes: 2 ** 30, stateBytes: 0, diskBytes: 0, capturedAt: new Date(FIRST).toISOString() },
    source: null,
    memoryMark: '0',
    newMachine: false,
    bootId: null,
    wanted: null
  }))
}
