// Divides a reclaim among guests. Pure.
const STEP = 2 ** 20

export interface Candidate {
  /** all of its memory */
  readonly assignedBytes: number
  /** what it keeps in any case */
  readonly floorBytes: number
}

/** The memory that a guest keeps. */
export function floorOf (assignedBytes: number, { percent, bytes }: { readonly percent: number, readonly bytes: number }): number {
  return Math.min(assignedBytes, Math.max(bytes, Math.ceil(assignedBytes * percent / 100)))
}

/** The target of each candidate, in their order: each gives in proportion to what it could give, in whole MiB. Together they give what was asked for, or all that they can. */
export function targetsFor (bytes: number, candidates: readonly Candidate[]): number[] {
  const room = candidates.map(({ assignedBytes, floorBytes }) => wholeSteps(Math.max(0, assignedBytes - floorBytes)))
  const most = room.reduce((sum, each) => sum + each, 0)
  const wanted = Math.min(Math.ceil(bytes / STEP) * STEP, most)
  const shares = room.map((each) => most === 0 ? 0 : wholeSteps(wanted * (each / most)))
  let rest = wanted - shares.reduce((sum, each) => sum + each, 0)
  return candidates.map(({ assignedBytes }, index) => {
    const share = shares[index] ?? 0
    const more = Math.min(rest, (room[index] ?? 0) - share)
    rest -= more
    return assignedBytes - share - more
  })
}

function wholeSteps (bytes: number): number {
  return Math.floor(bytes / STEP) * STEP
}
