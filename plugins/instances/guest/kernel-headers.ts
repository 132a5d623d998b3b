// The disk with the modules and headers of the guest's kernel, which an instance's VM has unless it was asked for without.
import type { VmDisk } from '../../../core/library/hypervisor.ts'
import type { BaseContext } from '../context.ts'
import type { InstanceSpec } from '../model/record.ts'

/** The guest's name of it: the disk after the two that every VM has. */
const DEVICE = '/dev/vdc'

/**
 * The spec for a VM that boots, with the disk for the kernel of now. A VM that goes on from memory keeps the one that it knows.
 * @throws kernel_headers_unavailable
 */
export async function withKernelHeaders (context: BaseContext, spec: InstanceSpec): Promise<InstanceSpec> {
  const { kernelHeaders: _, ...others } = spec
  const kernelHeaders = spec.skipKernelHeaders ? undefined : await context.guest.kernelHeaders()
  return kernelHeaders === undefined ? others : { ...others, kernelHeaders }
}

/** What goes behind a VM's root and overlay. */
export function kernelHeadersDisks (context: BaseContext, { kernelHeaders }: Pick<InstanceSpec, 'kernelHeaders'>): VmDisk[] {
  return kernelHeaders === undefined ? [] : [{ id: 'headers', path: context.guest.kernelHeadersDisk(kernelHeaders), readonly: true }]
}

/** What the guest is told of it. */
export function kernelHeadersOf ({ kernelHeaders }: Pick<InstanceSpec, 'kernelHeaders'>): { readonly kernelHeaders?: string } {
  return kernelHeaders === undefined ? {} : { kernelHeaders: DEVICE }
}
