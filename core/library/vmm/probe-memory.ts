// What a driver's probe found, for as long as the server runs: for good when nothing is wrong, else for a while.
import type { HypervisorProbe } from '../hypervisor.ts'

/** The reason for a failed trial may be a busy host or a full disk, which passes. */
export const RETRY_AFTER_MS = 10 * 60_000

export interface ProbeMemory {
  /** The first call takes as long as the probe. */
  probe (): Promise<HypervisorProbe>
  /** What was found of another version than runs is found anew; a probe that goes on is waited for. */
  forget (running: string): void
}

/** @param now for tests */
export function createProbeMemory (find: () => Promise<HypervisorProbe>, now = (): number => performance.now()): ProbeMemory {
  let known: { readonly found: HypervisorProbe, readonly until: number } | undefined
  let asking: Promise<HypervisorProbe> | undefined

  function keep (found: HypervisorProbe): HypervisorProbe {
    known = { found, until: found.supported && found.reason === undefined ? Infinity : now() + RETRY_AFTER_MS }
    return found
  }

  /** VMs that can run go on doing so: it was a busy host that a later probe found nothing on. */
  async function findBetter (): Promise<HypervisorProbe> {
    const before = known?.found.supported === true ? known.found : undefined
    const found = await find().catch((error: unknown) => {
      // A failed attempt to find out is no answer.
      if (before === undefined) throw error
      return before
    })
    return before !== undefined && !found.supported ? before : found
  }

  function ask (): Promise<HypervisorProbe> {
    asking ??= findBetter().then(keep).finally(() => { asking = undefined })
    return asking
  }

  return {
    async probe () {
      if (known === undefined) return await ask()
      const { found, until } = known
      if (now() < until) return found
      const again = ask()
      if (!found.supported) return await again
      again.catch(() => {})
      return found
    },
    forget (running) {
      if (known?.found.version !== running) known = undefined
    }
  }
}
