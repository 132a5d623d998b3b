// The slot `hypervisors`: what a driver must do. Types only. The suite test/contracts/hypervisor.ts is the contract in executable form.
import type { Duplex } from 'node:stream'

export type HypervisorName = 'cloud-hypervisor' | 'firecracker' | 'qemu' | 'vz'

export interface HypervisorProbe {
  readonly supported: boolean
  /** version of the VMM */
  readonly version?: string
  /** how guest instructions run, found by booting something, never guessed */
  readonly acceleration?: 'kvm' | 'tcg' | 'hvf'
  /** one sentence: why it is not supported, or why the acceleration is not the best one */
  readonly reason?: string
}

export interface VmDisk {
  /** stable name inside the VM's device list: `root`, `overlay`, `volume-0`, … */
  readonly id: string
  /** absolute path of a raw image */
  readonly path: string
  readonly readonly: boolean
}

export interface VmSpec {
  readonly id: string
  /**
   * The VM's own folder. The driver keeps sockets and its own files in it; sockets are named relative to it,
   * since a socket path is limited to 107 bytes.
   */
  readonly directory: string
  readonly vcpus: number
  readonly memoryBytes: number
  readonly kernel: { readonly path: string, readonly initrd: string, readonly arguments: readonly string[] }
  /** in guest order: the first is /dev/vda */
  readonly disks: readonly VmDisk[]
  /** files that the VMM appends to by itself, so that they need no server. They exist and are writable for `identity`. */
  readonly files: {
    /** the guest kernel's console, and what the VMM itself prints */
    readonly vmm: string
    /** the program's output */
    readonly output: string
    /** the guest's last word: why the program ended */
    readonly report: string
  }
  /** the unprivileged user that the VMM runs as; absent: the server's own user */
  readonly identity?: { readonly uid: number, readonly gid: number }
}

/** Plain JSON. Stored by the server, and enough to find the VM again after a restart. */
export interface VmHandle {
  readonly driver: string
  readonly version: number
  readonly vmmVersion: string
  readonly pid: number
  readonly startTicks: string
  readonly bootId: string
  readonly directory: string
}

/**
 * `running` and `paused`: the VMM says so. `hung`: the VMM process exists and does not answer. `gone`: no VMM process.
 */
export type VmStatus = 'running' | 'paused' | 'hung' | 'gone'

export interface VmState {
  readonly status: VmStatus
  /** one sentence, with `hung` */
  readonly reason?: string
}

export interface Vm {
  readonly handle: VmHandle
  /** The last known state. Kept current by the driver (events and its own heartbeat), so reading it costs nothing. */
  readonly state: VmState
  /** Called at each change of `state`; `gone` is the last call. Returns the unsubscriber. */
  onState (listener: (state: VmState) => void): () => void
  /** Opens the byte stream to the guest's first process. One at a time; a new one ends the old one. */
  connect (): Promise<Duplex>
  /** Ends the VMM at once and returns when its process is gone. Idempotent. */
  kill (): Promise<void>
  /** Resolves when the VMM process is gone. */
  wait (): Promise<void>
  /** Points the VMM's output file at `path` from now on, without losing a byte. The old file is whole afterwards. */
  rotate (file: 'output' | 'vmm', path: string): Promise<void>
  /** Lets go of the VM without ending it: closes sockets and timers. */
  release (): void
}

export interface HypervisorDriver {
  readonly name: HypervisorName
  /** Cached after the first call. */
  probe (): Promise<HypervisorProbe>
  /** Starts a VM. Resolves once the VMM answers and the guest's processors run; nothing stays behind when it rejects. */
  launch (spec: VmSpec, signal?: AbortSignal): Promise<Vm>
  /** Takes over a VM that an earlier server started. A vanished one gives a `Vm` whose state is `gone`; it does not throw. */
  attach (handle: VmHandle): Promise<Vm>
}

declare module '../plugins/manifest.ts' {
  interface Slots {
    readonly hypervisors: ReadonlyMap<string, HypervisorDriver>
  }
}
