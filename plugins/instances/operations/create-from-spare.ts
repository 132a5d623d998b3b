// Creates an instance from a spare VM of its shape.
import { instancesFolder } from '../folder/paths.ts'
import type { Context } from '../context.ts'
import { lifeOf } from '../life/begin.ts'
import { fitsOnDisk } from '../memory-image/memory-file.ts'
import type { InstanceSpec } from '../model/record.ts'
import { withBandwidthShare } from '../parts/bandwidth.ts'
import { becomeInstance } from './become-instance.ts'
import type { Creation, Made } from './made.ts'

/** Whether both have the same bandwidth. A spare VM has the share of its vCPUs, which does not change. */
const areConnectedAlike = (one: InstanceSpec, other: InstanceSpec): boolean => one.network?.downloadBps === other.network?.downloadBps && one.network?.uploadBps === other.network?.uploadBps

/** Undefined when there is no spare VM, or none that can be used; nothing is left of it then. @throws NameTaken, insufficient_resources */
export async function createFromSpare (context: Context, { name, spec, image, shape, steps }: Creation): Promise<Made | undefined> {
  // A spare VM has no volumes. Giving it some would take longer than a clone, which has them from its start.
  // The memory file of a VM that runs must be able to grow.
  if (shape === undefined || !areConnectedAlike(spec, withBandwidthShare(context, { ...spec, network: { enabled: spec.network?.enabled === true } })) || spec.volumes !== undefined || !await fitsOnDisk(instancesFolder(context.dataDir), spec.memoryBytes)) return undefined
  for (let spare = context.spares.take(shape.key); spare !== undefined; spare = context.spares.take(shape.key)) {
    // The capacity of the host has changed since the spare VM was made.
    if (!areConnectedAlike(spec, spare.record.spec)) {
      await spare.end()
      continue
    }
    const became = await becomeInstance(context, spare, { name, spec: { ...spec, source: { kind: 'template', id: shape.key } }, image, guest: { origin: 'launched' }, life: lifeOf(spec), steps })
    if (became !== undefined) return { ...became, way: 'spare' }
    steps.note('a spare VM that was of no use')
  }
  return undefined
}
