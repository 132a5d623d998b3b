// A reclaim of memory, and what became of it. Types only.

export interface ReclaimRequest {
  /** what all guests together are to do without; 0: they get everything again */
  readonly reclaimBytes: number
  /** says what would be asked of whom, and changes nothing */
  readonly isDry: boolean
  readonly holdMs: number
  readonly reason: string | undefined
}

export interface Reclaimed {
  readonly requestedBytes: number
  readonly plannedBytes: number
  readonly appliedBytes: number
  /** of the host's memory */
  readonly availableBytes: number
  readonly isHostShort: boolean
  /** epoch `ms`; undefined: nothing is held */
  readonly holdUntil: number | undefined
  readonly actions: readonly ReclaimedOf[]
}

/** What became of it in one VM; targets and the rest in bytes of guest memory. */
export interface ReclaimedOf {
  readonly instanceId: string
  readonly instanceName: string
  readonly hypervisor: string
  readonly status: 'applied' | 'partial' | 'planned' | 'unchanged' | 'unsupported' | 'error'
  readonly error?: string
  readonly assignedBytes: number
  readonly floorBytes: number
  readonly previousTarget: number
  readonly plannedTarget: number
  readonly target: number
  readonly appliedBytes: number
}
