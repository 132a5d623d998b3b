// Remembers whether VMs can be saved and restored.
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { probeImaging, probeSpec, type ImagingFindings, type ImagingProbeOptions } from './imaging-probe.ts'
import type { ProbeCache } from '../../core/library/vmm/probe-cache.ts'
import { createProof } from './proof.ts'

/** Must change when the probe tests more than before. */
const PROBE_VERSION = 1

export interface ImagingProof {
  /** Why a VM cannot be saved and restored, in one sentence; undefined when it can. The first call may take as long as a boot. */
  refusal (hasHotplug: boolean): Promise<string | undefined>
  /** Ends a probe that is under way, with its VM. */
  close (): Promise<void>
}

export interface ImagingProofOptions extends ImagingProbeOptions {
  /** what the answer depends on, and its name: `QEMU 10.0.13` */
  readonly subject: (spec: VmSpec) => Promise<{ readonly key: string, readonly name: string }>
  readonly cache: ProbeCache
}

export function createImagingProof (options: ImagingProofOptions): ImagingProof {
  const subject = async (): ReturnType<typeof options.subject> => await options.subject(probeSpec(options.directory, await options.guest.system(), options))
  const proof = createProof<ImagingFindings>({
    key: async () => `imaging ${PROBE_VERSION} ${(await subject()).key}`,
    cache: options.cache,
    attempt: async (signal) => named(await probeImaging(options, signal), (await subject()).name),
    success: {},
    isSuccess: ({ hotplug }) => hotplug === undefined
  })
  return {
    async refusal (hasHotplug) {
      const { plain, hotplug } = await proof.findings()
      return hasHotplug ? hotplug : plain
    },
    close: proof.close
  }
}

function named ({ plain, hotplug }: ImagingFindings, name: string): ImagingFindings {
  return {
    ...plain === undefined ? {} : { plain: `${name} does not save and restore VMs on this host: ${plain}` },
    ...hotplug === undefined ? {} : { hotplug: `${name} does not save and restore VMs with memory that is plugged in on this host: ${hotplug}` }
  }
}
