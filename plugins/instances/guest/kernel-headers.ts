// The disk with the modules and headers of the guest's kernel. Every VM has it but those of instances that were created without it.
import type { VmDisk } from '../../../core/library/hypervisor.ts'
import type { BaseContext } from '../context.ts'
import type { InstanceSpec } from '../model/record.ts'

/** the name that the disk has in the guest: it comes after the two disks that every VM has */
const DEVICE = '/dev/vdc'

/**
 * The spec for a VM that boots, with the disk of the present kernel. A VM that goes on from memory keeps the disk that it has.
 * @throws kernel_headers_unavailable
 */
export async function withKernelHeaders (context: BaseContext, spec: InstanceSpec): Promise<InstanceSpec> {
  const { kernelHeaders: _, ...others } = spec
  const kernelHeaders = spec.skipKernelHeaders ? undefined : await context.guest.kernelHeaders()
  return kernelHeaders === undefined ? others : { ...others, kernelHeaders }
}

/** The disks that come after root and overlay. */
export function kernelHeadersDisks (context: BaseContext, { kernelHeaders }: Pick<InstanceSpec, 'kernelHeaders'>): VmDisk[] {
  return kernelHeaders === undefined ? [] : [{ id: 'headers', path: context.guest.kernelHeadersDisk(kernelHeaders), readonly: true }]
}

/** What the guest is told of that disk. */
export function kernelHeadersOf ({ kernelHeaders }: Pick<InstanceSpec, 'kernelHeaders'>): { readonly kernelHeaders?: string } {
  return kernelHeaders === undefined ? {} : { kernelHeaders: DEVICE }
}
