// What is found out by trying it with a VM: a success is remembered on disk, for one boot of the host, VMM and kernel; a failure for a while.
import type { ProbeCache } from '../../core/library/vmm/probe-cache.ts'
import { RETRY_AFTER_MS } from '../../core/library/vmm/probe-memory.ts'

export interface Proof<T> {
  /** The first call may take as long as the trial. */
  findings (): Promise<T>
  /** What is known already; undefined when that is nothing. */
  known (): Promise<T | undefined>
  /** Ends a trial that is under way, with its VM. */
  close (): Promise<void>
}

export interface ProofOptions<T> {
  /** what the answer depends on */
  readonly key: () => Promise<string>
  readonly cache: ProbeCache
  readonly attempt: (signal: AbortSignal) => Promise<T>
  /** what a success finds */
  readonly success: T
  readonly isSuccess: (findings: T) => boolean
}

class NotProven extends Error {}

export function createProof<T> ({ key, cache, attempt, success, isSuccess }: ProofOptions<T>): Proof<T> {
  const closing = new AbortController()
  let known: { readonly findings: T, readonly until: number } | undefined
  let running: Promise<T> | undefined

  /** What is remembered on disk, else what `otherwise` finds; only a success is kept there. */
  async function recall (otherwise: () => Promise<T>): Promise<T> {
    let findings = success
    try {
      await cache.recall(await key(), async () => {
        findings = await otherwise()
        if (!isSuccess(findings)) throw new NotProven()
        return undefined
      })
    } catch (error) {
      if (!(error instanceof NotProven)) throw error
    }
    return findings
  }

  async function find (): Promise<T> {
    const findings = await recall(async () => await attempt(closing.signal))
    known = { findings, until: isSuccess(findings) ? Infinity : performance.now() + RETRY_AFTER_MS }
    return findings
  }

  const present = (): T | undefined => known !== undefined && performance.now() < known.until ? known.findings : undefined

  return {
    async findings () {
      const found = present()
      if (found !== undefined) return found
      closing.signal.throwIfAborted()
      // A failed attempt to find out is no answer.
      running ??= find().finally(() => { running = undefined })
      return await running
    },
    async known () {
      const found = present()
      if (found !== undefined || running !== undefined) return found
      let isRemembered = true
      const findings = await recall(async () => {
        isRemembered = false
        throw new NotProven()
      })
      if (!isRemembered) return undefined
      known = { findings, until: Infinity }
      return findings
    },
    async close () {
      closing.abort(new Error('the server is stopping'))
      await running?.catch(() => {})
    }
  }
}
