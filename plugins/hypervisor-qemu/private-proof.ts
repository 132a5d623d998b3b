// Remembers whether VMs can map a memory file privately, and be saved as changes of it. The plain probe comes first: this one says nothing about a VMM that saves no VM.
import type { PrivateMemory } from '../../core/library/hypervisor.ts'
import { probePrivateMemory, probeSpec } from './imaging-probe.ts'
import type { ImagingProofOptions } from './imaging-proof.ts'
import { createProof } from './proof.ts'
import { readonlyPrivate } from './restore.ts'

/** Must change when the probe tests more than before. */
const PROBE_VERSION = 1

interface Findings { readonly problem?: string }

export interface PrivateProof extends PrivateMemory {
  /** Ends a probe that is under way, with its VM. */
  close (): Promise<void>
}

export interface PrivateProofOptions extends ImagingProofOptions {
  readonly vmmVersion: () => Promise<string | undefined>
}

export function createPrivateProof (options: PrivateProofOptions): PrivateProof {
  const subject = async (): ReturnType<typeof options.subject> => await options.subject(probeSpec(options.directory, await options.guest.system(), { canPlugMemory: false }))
  const proof = createProof<Findings>({
    key: async () => `private memory ${PROBE_VERSION} ${(await subject()).key}`,
    cache: options.cache,
    async attempt (signal) {
      const why = await probePrivateMemory(options, signal)
      return why === undefined ? {} : { problem: `${(await subject()).name} does not save VMs as differences from a memory file on this host: ${why}` }
    },
    success: {},
    isSuccess: ({ problem }) => problem === undefined
  })
  const tooOld = async (): Promise<string | undefined> => {
    const version = await options.vmmVersion() ?? 'of an unknown version'
    return readonlyPrivate(version) ? undefined : `QEMU ${version} opens a file that it maps privately for writing; 8.2 and later can share one`
  }
  return {
    refusal: async () => await tooOld() ?? (await proof.findings()).problem,
    async isProven () {
      if (await tooOld() !== undefined) return false
      const known = await proof.known()
      return known !== undefined && known.problem === undefined
    },
    close: proof.close
  }
}
