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
  /** what stands in the report file in place of the truth; empty for no report */
  readonly report?: string
}

/** All that a fake VMM is told at its start. */
export interface FakeVmmOrder {
  readonly script: FakeScript
  readonly files: { readonly vmm: string, readonly output: string, readonly report: string }
  readonly memoryBytes: number
  readonly identity?: { readonly uid: number, readonly gid: number }
}

/** working folder of a fake VMM, inside the VM's own, and its sockets */
export const FOLDER = 'fake'
export const CONTROL_SOCKET = 'control.sock'
export const AGENT_SOCKET = 'agent.sock'
