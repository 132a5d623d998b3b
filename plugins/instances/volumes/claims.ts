// Which volumes an instance has, towards the plugin volumes: attached for as long as the instance has a row that names them.
import { InvalidRequest, PluginDisabled } from '../../../core/errors/common.ts'
import { createUndo } from '../../../core/undo.ts'
import type { VolumeService } from '../../volumes/contract.ts'
import type { BaseContext, Context } from '../context.ts'
import { VolumeChanged } from '../errors.ts'
import { releaseAddress } from '../network.ts'
import type { InstanceRecord, InstanceSpec } from '../record.ts'
import { releaseRoom } from '../resources.ts'
import { claimOf, volumesOf, withVolumes } from './spec.ts'

/** @throws PluginDisabled: an instance may have been created while the plugin was there */
export function requireVolumes ({ volumes }: Pick<BaseContext, 'volumes'>): VolumeService {
  if (volumes === undefined) throw PluginDisabled('volumes', 'volumes')
  return volumes
}

/** The spec with ids in place of what the caller calls the volumes, and with what they are now. A worker's belong to the plugin that it works for. @throws not_found, ambiguous, invalid_request */
export async function resolveVolumes (context: BaseContext, spec: InstanceSpec): Promise<InstanceSpec> {
  const asked = volumesOf(spec)
  if (asked.length === 0) return spec
  const service = requireVolumes(context)
  const ids = new Set<string>()
  const found = []
  for (const [index, volume] of asked.entries()) {
    const { id, generation } = await service.find(volume.volumeId, spec.worker)
    if (ids.has(id)) throw InvalidRequest(`volumes[${index}].volume_id: the same volume is in this request twice`)
    ids.add(id)
    // A writer changes it by being one.
    found.push({ ...volume, volumeId: id, generation: volume.readonly ? generation : generation + 1, ...(spec.worker === undefined ? {} : { owner: spec.worker }) })
  }
  return withVolumes(spec, found)
}

/** Attaches the volumes of a new row; the row, and what it has besides, goes again when one of them cannot be had. */
export async function withClaims (context: Context, record: InstanceRecord): Promise<InstanceRecord> {
  const undo = createUndo()
  undo.add(async () => { await context.repository.remove(record.id) })
  undo.add(async () => { await releaseAddress(context, record) })
  undo.add(async () => { await releaseRoom(context, record.id) })
  try {
    await claim(context, record)
    return record
  } catch (error) {
    for (const failure of await undo.run()) context.log.error({ err: failure, instance: record.id }, 'the row of an instance without its volumes could not be removed')
    throw error
  }
}

async function claim (context: BaseContext, { id, spec }: InstanceRecord): Promise<void> {
  const volumes = volumesOf(spec)
  if (volumes.length === 0) return
  const service = requireVolumes(context)
  await service.attach(id, volumes.map(claimOf))
  try {
    // From now on nobody else can write them. Until now somebody may have.
    for (const { volumeId, generation, owner } of volumes) {
      const now = await service.find(volumeId, owner)
      if (now.generation !== generation) throw VolumeChanged(now.name)
    }
  } catch (error) {
    await service.detach(id)
    throw error
  }
}

/** Gives all volumes back; the VM must have ended. Whoever removes a row does this before. Idempotent. */
export async function releaseVolumes (context: BaseContext, { id, spec }: Pick<InstanceRecord, 'id' | 'spec'>): Promise<void> {
  if (volumesOf(spec).length > 0) await context.volumes?.detach(id)
}

/** At the start of the server: nobody has a volume whose row does not name it. Never rejects. */
export async function retainVolumes ({ volumes, log }: BaseContext, records: readonly InstanceRecord[]): Promise<void> {
  try {
    await volumes?.retainOnly(new Map(records.map(({ id, status, spec }) => [id, status === 'active' ? volumesOf(spec).map(({ volumeId }) => volumeId) : undefined])))
  } catch (error) {
    log.error({ err: error }, 'volumes of instances that are no more could not be given back')
  }
}
