// The pause between two tries to reach a VMM that has just been started.

const LEAST_MS = 2

/** No event tells of it: the socket's name appears before anyone listens. Who waits for it waits a fiftieth longer at most, and on a slow host leaves the VMM the processor. */
export function connectPauseMs (waitedMs: number): number {
  return Math.max(LEAST_MS, waitedMs / 50)
}
