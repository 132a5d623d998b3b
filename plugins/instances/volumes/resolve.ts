// Finds the volumes that a request names.
import { InvalidRequest, PluginDisabled } from '../../../core/errors/common.ts'
import type { VolumeService } from './contract.ts'
import type { BaseContext } from '../context.ts'
import type { InstanceSpec } from '../model/record.ts'
import { volumesOf, withVolumes } from './spec.ts'

/** @throws PluginDisabled: an instance may have been created while the plugin was there */
export function requireVolumes ({ volumes }: Pick<BaseContext, 'volumes'>): VolumeService {
  if (volumes === undefined) throw PluginDisabled('volumes', 'volumes')
  return volumes
}

/** The spec with ids and present generations of its volumes, in place of the names that the caller used. A worker's volumes belong to the plugin that it works for. @throws not_found, ambiguous, invalid_request */
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
    // A new writer changes the generation.
    found.push({ ...volume, volumeId: id, generation: volume.readonly ? generation : generation + 1, ...(spec.worker === undefined ? {} : { owner: spec.worker }) })
  }
  return withVolumes(spec, found)
}
