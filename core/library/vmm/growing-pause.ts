// The pause between two looks at a VMM's process, where no event tells of what is waited for: that one just started can be reached (its socket's name appears before anyone listens), or that one whose socket is closed has ended.

const LEAST_MS = 2

/** Who waits for it waits a fiftieth longer at most, and on a slow host leaves the VMM the processor. */
export function growingPauseMs (waitedMs: number): number {
  return Math.max(LEAST_MS, waitedMs / 50)
}
