// The volumes of an instance: attached for as long as it has a row that names them, and ready for its VM's user at the start of each VM.
import type { BaseContext } from '../context.ts'
import type { InstancePart, PartInstance } from '../contract.ts'
import { VolumeChanged } from '../errors.ts'
import { volumeDisks } from '../volumes/files.ts'
import { requireVolumes, resolveVolumes } from '../volumes/resolve.ts'
import { requireReaders, requireSettledVolumes, volumesForCopy, volumesForReplacement } from '../volumes/rules.ts'
import { claimOf, volumesOf } from '../volumes/spec.ts'

export function createVolumes (context: BaseContext): InstancePart {
  return {
    name: 'volumes',
    rank: 40,
    needs: { feature: 'removable-disks', fields: ['volumes'] },

    resolve: async (spec) => await resolveVolumes(context, spec),
    forCopy: async (spec, how) => await volumesForCopy(context, spec, how),
    forReplacement: volumesForReplacement,

    requireCapturable (call, instance, image) {
      requireSettledVolumes(call, instance)
      // The memory knows the content of the volume; others, or the instance itself, may have changed it before somebody goes on from this memory.
      if (image === 'copied') requireReaders(call, instance.spec)
    },

    async reserve ({ id, spec }) {
      const wanted = volumesOf(spec)
      if (wanted.length === 0) return
      const service = requireVolumes(context)
      await service.attach(id, wanted.map(claimOf))
      try {
        // From now on nobody else can write the volumes, but somebody may have written them before.
        for (const { volumeId, generation, owner } of wanted) {
          const now = await service.find(volumeId, owner)
          if (now.generation !== generation) throw VolumeChanged(now.name)
        }
      } catch (error) {
        await service.detach(id)
        throw error
      }
    },

    connect: async (instance) => ({ disks: await volumeDisks(context, instance) }),

    async release ({ id, spec }) {
      if (volumesOf(spec).length > 0) await context.volumes?.detach(id)
    },

    async retain (instances) {
      try {
        await context.volumes?.retainOnly(new Map(instances.map((instance) => [instance.id, idsOf(instance)])))
      } catch (error) {
        context.log.error({ err: error }, 'volumes of instances that are no more could not be given back')
      }
    }
  }
}

/** Undefined for an instance that is being deleted. */
function idsOf ({ status, spec }: PartInstance): readonly string[] | undefined {
  return status === 'active' ? volumesOf(spec).map(({ volumeId }) => volumeId) : undefined
}
