// What a test can make a fake VM do. A script is JSON: given to the driver, or in the file that the plugin's config names.

export interface FakeScript {
  /** pause before the VMM is started, `ms` */
  readonly launchDelayMs?: number
  /** the VMM prints this and ends at once */
  readonly launchFailure?: string
  /** pause before the guest answers its host, `ms` */
  readonly bootDelayMs?: number
  /** what the guest does when its host greets it: nothing, or bytes that are no answer */
  readonly greeting?: 'silence' | 'garbage'
  /** pause between the order to run and the program's start, `ms` */
  readonly runDelayMs?: number
  /** the VMM kills itself this long after its start, `ms` */
  readonly crashAfterMs?: number
  /** the VMM stops answering this long after its start, `ms` */
  readonly hangAfterMs?: number
  /** the guest takes note of `shutdown` and goes on */
  readonly ignoresShutdown?: boolean
  /** pause in the middle of a capture, and of a restore, `ms` */
  readonly captureDelayMs?: number
  readonly restoreDelayMs?: number
  /** why no capture, and no restore, succeeds */
  readonly captureFailure?: string
  readonly restoreFailure?: string
  /** why the driver makes no images: what its probe would have found */
  readonly imagingRefusal?: string
  /** the VMM of a restored VM kills itself this long after its start, `ms` */
  readonly restoredCrashAfterMs?: number
  /** what stands in the report file in place of the truth; empty for no report */
  readonly report?: string
}

/** A guest at one moment. */
export interface SavedGuest {
  readonly bootId: string
  readonly phase: string
  readonly agent: boolean
  readonly argv: readonly string[]
  /** what its program keeps in memory */
  readonly memory: string
}

/** All that a fake VMM is told at its start. */
export interface FakeVmmOrder {
  readonly script: FakeScript
  readonly files: { readonly vmm: string, readonly output: string, readonly report: string }
  readonly memoryBytes: number
  readonly disks: ReadonlyArray<{ readonly id: string, readonly path: string }>
  /** what a restored VM goes on with */
  readonly saved?: SavedGuest
  readonly identity?: { readonly uid: number, readonly gid: number }
}

/** working folder of a fake VMM, inside the VM's own, and its sockets */
export const FOLDER = 'fake'
export const CONTROL_SOCKET = 'control.sock'
export const AGENT_SOCKET = 'agent.sock'
