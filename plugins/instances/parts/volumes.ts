// The volumes of an instance: attached for as long as it has a row that names them, and ready for its VM's user at the start of each VM.
import { VolumeChanged } from '../errors.ts'
import type { InstanceRecord } from '../record.ts'
import { volumeDisks } from '../volumes/files.ts'
import { requireVolumes, resolveVolumes } from '../volumes/resolve.ts'
import { requireReaders, requireSettledVolumes, volumesForCopy, volumesForReplacement } from '../volumes/rules.ts'
import { claimOf, volumesOf } from '../volumes/spec.ts'
import type { InstancePart } from './part.ts'

export const volumes: InstancePart = {
  name: 'volumes',

  resolve: resolveVolumes,
  forCopy: volumesForCopy,
  forReplacement: volumesForReplacement,

  requireCapturable (call, record, image) {
    requireSettledVolumes(call, record)
    // The memory knows a volume that others, or the instance itself, will have changed by the time that somebody goes on from it.
    if (image === 'copied') requireReaders(call, record.spec)
  },

  async reserve (context, { id, spec }) {
    const wanted = volumesOf(spec)
    if (wanted.length === 0) return
    const service = requireVolumes(context)
    await service.attach(id, wanted.map(claimOf))
    try {
      // From now on nobody else can write them. Until now somebody may have.
      for (const { volumeId, generation, owner } of wanted) {
        const now = await service.find(volumeId, owner)
        if (now.generation !== generation) throw VolumeChanged(now.name)
      }
    } catch (error) {
      await service.detach(id)
      throw error
    }
  },

  connect: async (context, record) => ({ disks: await volumeDisks(context, record) }),

  async release (context, { id, spec }) {
    if (volumesOf(spec).length > 0) await context.volumes?.detach(id)
  },

  async retain (context, records) {
    try {
      await context.volumes?.retainOnly(new Map(records.map((record) => [record.id, idsOf(record)])))
    } catch (error) {
      context.log.error({ err: error }, 'volumes of instances that are no more could not be given back')
    }
  }
}

/** Undefined for an instance that is going. */
function idsOf ({ status, spec }: InstanceRecord): readonly string[] | undefined {
  return status === 'active' ? volumesOf(spec).map(({ volumeId }) => volumeId) : undefined
}
