// The `imaging` facet of a VM of any VMM: one capture at a time; when it fails, a guest that ran goes on.
import { BerthError } from '../../errors/define.ts'
import type { CaptureFiles, MemoryImage, VmImaging } from '../hypervisor.ts'
import { CaptureFailed } from './errors.ts'

/** The steps that a driver implements. */
export interface ImagingSteps {
  readonly memoryFile: VmImaging['memoryFile']
  readonly memoryBase?: string
  readonly copyAhead?: NonNullable<VmImaging['copyAhead']>
  /** the state that the VMM reports: `running` while its guest runs */
  readonly status: () => Promise<unknown>
  readonly pause: () => Promise<void>
  readonly resume: () => Promise<void>
  /** Pauses the VM and saves it. @param before what `status` said */
  readonly save: (before: unknown, files: CaptureFiles, signal: AbortSignal | undefined) => Promise<MemoryImage>
}

export function createImaging ({ memoryFile, memoryBase, copyAhead, status, pause, resume, save }: ImagingSteps): VmImaging {
  let busy = false

  async function captureNow (files: CaptureFiles, signal: AbortSignal | undefined): Promise<MemoryImage> {
    const before = await status()
    try {
      return await save(before, files, signal)
    } catch (error) {
      if (before === 'running') await resume().catch((failure: unknown) => { throw stuck(error, failure) })
      throw signal?.aborted === true ? signal.reason : error
    }
  }

  return {
    memoryFile,
    ...memoryBase === undefined ? {} : { memoryBase },
    ...copyAhead === undefined ? {} : { copyAhead },
    pause,
    resume,
    async capture (files, signal) {
      signal?.throwIfAborted()
      if (busy) throw CaptureFailed('it is being captured already')
      busy = true
      try {
        return await captureNow(files, signal)
      } finally {
        busy = false
      }
    }
  }
}

/** A VMM that ends during its capture, or falls silent, is no fault of the server's: the caller gets the kind of error that says so. */
function stuck (error: unknown, failure: unknown): Error {
  const both = new AggregateError([error, failure], 'the VM could be neither captured nor resumed')
  return failure instanceof BerthError ? new BerthError(failure.code, failure.kind, `${both.message}: ${failure.message}`, { cause: both }) : both
}
