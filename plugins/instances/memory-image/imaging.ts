// Whether the VM of an instance can be saved and restored on this host.
import type { HypervisorImaging } from '../../../core/library/hypervisor.ts'
import type { BaseContext } from '../context.ts'
import { namingFullDisk } from '../host/disk-full.ts'
import { ImagingUnproven, ImagingUnsupported } from '../errors.ts'
import { driverOf } from '../operations/launch.ts'
import type { InstanceRecord } from '../model/record.ts'

/** Asked before anything is made or given up. The first answer may take as long as a boot. @throws ImagingUnsupported, ImagingUnproven, PluginDisabled */
export async function requireProvenImaging (context: BaseContext, call: string, { spec }: Pick<InstanceRecord, 'spec'>): Promise<HypervisorImaging> {
  const { imaging } = driverOf(context, { spec })
  if (imaging === undefined) throw ImagingUnsupported(call, spec.hypervisor)
  const why = await imaging.refusal(spec).catch((error: unknown) => { throw namingFullDisk(call, error) })
  if (why !== undefined) throw ImagingUnproven(call, why)
  return imaging
}
