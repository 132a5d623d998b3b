// Remembers whether VMs can be saved and restored: a success on disk, for one boot of the host, VMM and kernel; a failure for a while.
import type { VmSpec } from '../../core/library/hypervisor.ts'
import { probeImaging, probeSpec, type ImagingFindings, type ImagingProbeOptions } from './imaging-probe.ts'
import type { ProbeCache } from '../../core/library/vmm/probe-cache.ts'

/** Must change when the probe tests more than before. */
const PROBE_VERSION = 1
/** The reason may be a busy host or a full disk, which passes. */
const RETRY_AFTER_MS = 10 * 60_000

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

class NotProven extends Error {}

export function createImagingProof (options: ImagingProofOptions): ImagingProof {
  const closing = new AbortController()
  let known: { readonly findings: ImagingFindings, readonly until: number } | undefined
  let running: Promise<ImagingFindings> | undefined

  async function find (): Promise<ImagingFindings> {
    const { key, name } = await options.subject(probeSpec(options.directory, await options.guest.system(), options.canPlugMemory))
    let findings: ImagingFindings = {}
    try {
      await options.cache.recall(`imaging ${PROBE_VERSION} ${key}`, async () => {
        findings = named(await probeImaging(options, closing.signal), name)
        // Only a lasting answer is kept on disk.
        if (findings.hotplug !== undefined) throw new NotProven()
        return undefined
      })
    } catch (error) {
      if (!(error instanceof NotProven)) throw error
    }
    known = { findings, until: findings.hotplug === undefined ? Infinity : performance.now() + RETRY_AFTER_MS }
    return findings
  }

  async function findings (): Promise<ImagingFindings> {
    if (known !== undefined && performance.now() < known.until) return known.findings
    closing.signal.throwIfAborted()
    // A failed attempt to find out is no answer.
    running ??= find().finally(() => { running = undefined })
    return await running
  }

  return {
    async refusal (hasHotplug) {
      const { plain, hotplug } = await findings()
      return hasHotplug ? hotplug : plain
    },
    async close () {
      closing.abort(new Error('the server is stopping'))
      await running?.catch(() => {})
    }
  }
}

function named ({ plain, hotplug }: ImagingFindings, name: string): ImagingFindings {
  return {
    ...plain === undefined ? {} : { plain: `${name} does not save and restore VMs on this host: ${plain}` },
    ...hotplug === undefined ? {} : { hotplug: `${name} does not save and restore VMs with memory that is plugged in on this host: ${hotplug}` }
  }
}
