// The slot `hypervisors`: what a driver must do. Types only. The suite test/contracts/hypervisor.ts is the contract in executable form.
import type { Duplex } from 'node:stream'

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
  /**
   * Of a disk that can come and go while the VM runs: its place, 0 to 63, which no other such disk of the VM has. The guest knows it by its id, as a serial number.
   * Absent: the disk is there from the VM's start to its end, and the guest names it by its order.
   */
  readonly unit?: number
}

/** Guest memory in a file, so that the VM can be started on a memory image. */
export interface VmMemoryFile {
  /** absolute path. The file exists, and `identity` may read and write it. */
  readonly path: string
  /**
   * `shared`: the VM writes the file, which is the memory part of an image once `capture` has returned. For `launch` it is empty
   * (or only holes); no other VM may use it, which the driver enforces for as long as the VMM lives.
   * `private`: the VM reads the file and keeps what it writes to itself; any number of VMs may. For `restore` only.
   */
  readonly sharing: 'shared' | 'private'
}

export interface VmNetwork {
  /** path of the network namespace that holds the TAP; the VMM is started in it */
  readonly namespace: string
  /** name of the TAP device, which exists and which `identity` may use */
  readonly tap: string
  /** `02:00:00:aa:bb:cc` */
  readonly mac: string
}

/** A device of the host that a VM has for itself. */
export interface VmHostDevice {
  /** absolute path of its folder in sysfs; its driver is one for this, and `identity` may use the device file of its group */
  readonly sysfs: string
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
  /** memory that is plugged in beside `memoryBytes` while the guest's kernel boots; it is in no memory file but in a captured VM's state. Absent: none */
  readonly hotplugBytes?: number
  /** most bytes per second that all disks together read and write; absent: no limit */
  readonly diskBytesPerSecond?: number
  /** folders of control groups that the VMM is put in */
  readonly groups?: readonly string[]
  /** absent: memory that is in no file, the fastest to boot on; a VM with it can still be captured */
  readonly memory?: VmMemoryFile
  readonly kernel: { readonly path: string, readonly initrd: string, readonly arguments: readonly string[] }
  /** in guest order: the first without a unit is /dev/vda */
  readonly disks: readonly VmDisk[]
  /**
   * The network device; absent: none. A saved state holds the device and the MAC that the guest had, so a VM is restored with a network when it was captured with
   * one; the guest sets the MAC of a clone itself. A VM that is restored may have another TAP.
   */
  readonly network?: VmNetwork
  /** A VM with any keeps all of its memory on the host, which it may lock, and has no memory file; no image of it can be made. Absent: none. */
  readonly devices?: readonly VmHostDevice[]
  /**
   * Whether the guest can give memory back that it does not use, and does so by itself where it can (`Vm.balloon`). Nothing where the driver, or a device of the host, forbids it;
   * a VM that is restored has it when the captured one had. Not together with `private` memory: what a guest gives back is cut out of the file.
   */
  readonly balloon?: boolean
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
  /** what the driver alone understands */
  readonly details?: Readonly<Record<string, unknown>>
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

/**
 * A VM at one moment: two files, and this, which is plain JSON and stored by the caller. The state file holds the devices and processors, the
 * memory file the memory, as large as the guest's memory, with holes for zero pages. Neither knows where it is: both may be moved and copied.
 */
export interface MemoryImage {
  readonly driver: string
  readonly version: number
  readonly vmmVersion: string
  /** as of `HypervisorImaging.key` for the VM that was booted; restored VMs keep it */
  readonly key: string
  /** what a VM must have in common with the image to be restored from it, by name: `cpu`, `disks`, … */
  readonly shape: Readonly<Record<string, string>>
  readonly vcpus: number
  readonly memoryBytes: number
  /** exact size of the state file, which tells a cut one */
  readonly stateBytes: number
  /** disk space that the memory file takes, without its holes */
  readonly memoryStoredBytes: number
  /** ISO 8601 */
  readonly capturedAt: string
}

export interface CaptureFiles {
  /** absolute; must not exist */
  readonly statePath: string
  /** absolute; must not exist, unless `copyAhead` has made it. For a VM that has no memory file of its own (`VmImaging.memoryFile`); ignored otherwise */
  readonly memoryPath?: string
}

/** What a VM can do whose driver makes memory images. */
export interface VmImaging {
  /** The file that the VM keeps its memory in, `shared`; undefined when `capture` must write it out. */
  readonly memoryFile: string | undefined
  /**
   * Copies the memory, which is in no memory file, while the guest runs: it is of no one moment. A `capture` to the same path then writes only what is different. Absent where
   * `capture` writes all of it in any case, or `memoryFile` can be copied. What a failure leaves is the caller's to remove.
   */
  copyAhead? (memoryPath: string): Promise<void>
  /** Resolves when no processor of the guest runs and its finished disk writes are on disk. Nothing to do for a paused VM. */
  pause (): Promise<void>
  /** Resolves when the guest goes on. Nothing to do for a running VM. */
  resume (): Promise<void>
  /**
   * Pauses the VM and saves it; it stays paused, and its files agree with one another and with its disks until `resume`. Then either
   * `kill` it (standby), or copy memory and disks and `resume` it (fork). With a memory file that takes some 10 ms whatever the size;
   * without one, all memory that is not zero is written. The files belong to the server's user and are not synced (core/library/memory-image.ts does).
   * A second capture without `resume` in between may let the guest run for a moment first, and makes the first image's memory useless if that is this VM's own file.
   * When it fails, the files are removed and the VM runs again if it ran before.
   */
  capture (files: CaptureFiles, signal?: AbortSignal): Promise<MemoryImage>
}

export interface RestoreOptions {
  readonly signal?: AbortSignal
  /**
   * Called when the VM has all of its state, and waited for before its guest takes its first step: a server that dies from then on leaves a VM that the next one can `attach`, and `resume` if
   * it is still paused. When it rejects, so does the restore.
   */
  readonly beforeRun?: (handle: VmHandle) => Promise<void>
}

/** What a driver can do that makes memory images; absent from others. */
export interface HypervisorImaging {
  /**
   * Whether a VM that was captured may stay paused for as long as somebody likes: while nobody is connected to its guest, nor was at the capture, no byte of its memory file and its disks changes; and
   * with `resume` it goes on as if it had never been captured, for which its image must have been given up. Absent: it is ended, or goes on, soon after the capture.
   */
  readonly keepsPaused?: boolean
  /**
   * Why no VM like this can be saved and restored here, in one sentence; undefined when it can. Found by saving and restoring a small one, once for each VMM and kernel, and
   * remembered: the first call may take as long as a boot.
   */
  refusal (spec: Pick<VmSpec, 'hotplugBytes'>): Promise<string | undefined>
  /** Changes with anything that makes images of one VM useless, or wrong, for another: VMM, processor, devices, kernel arguments. Not the kernel's and disks' content. */
  key (spec: VmSpec): Promise<string>
  /**
   * Starts a VM where the image stopped, on `spec.memory`: the memory file of the image, or a copy (a `shared` one is the VM's from then on). Resolves once the
   * guest runs; nothing stays behind when it rejects (but a `shared` file may have been written). Disks, files, folder and user may be others than the captured VM's, the number and kind of disks without a unit may not. Those with a unit are as they were, too, unless
   * the guest had not looked for any yet, as one that waits for its workload has not.
   */
  restore (spec: VmSpec, image: MemoryImage, statePath: string, options?: RestoreOptions): Promise<Vm>
}

/** Memory that the guest gives back to the host while it runs, and gets again when it needs it. */
export interface VmBalloon {
  /** all of the VM's memory, bytes */
  readonly wholeBytes: number
  /** what the guest has at this moment, bytes, as the VMM knows it */
  bytes (): Promise<number>
  /** Asks the guest to make do with so much, bytes; it follows as it can, or not at all. `wholeBytes`: it has everything again. A VM that was restored has been asked for nothing. */
  aim (bytes: number): Promise<void>
}

/** A part of a disk. */
export interface VmDiskRange { readonly offset: number, readonly bytes: number }

/** What the guest writes to a disk from some moment on. */
export interface VmDiskChanges {
  /** All that was written, and perhaps more; to be asked for once, while the VM is paused. The last one may reach beyond the end of the disk. */
  ranges (): Promise<readonly VmDiskRange[]>
  end (): Promise<void>
}

export interface Vm {
  readonly handle: VmHandle
  /** present when the driver makes memory images of this VM */
  readonly imaging?: VmImaging
  /** present when the VM was started with `VmSpec.balloon`, and the driver has such a thing */
  readonly balloon?: VmBalloon
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
  /**
   * Puts another raw image in the place of a disk, in the same mode. Only while the guest has no driver on that disk, since it reads the size once: a guest
   * that waits for its workload. The VM's user must be able to open the file. The old image is closed when it resolves; when it rejects, the disk is as before.
   * Absent when the driver cannot.
   */
  replaceDisk? (id: string, path: string): Promise<void>
  /** Changes what `VmSpec.diskBytesPerSecond` said; `undefined`: no limit. Absent when the driver cannot. */
  limitDisks? (bytesPerSecond: number | undefined): Promise<void>
  /**
   * Gives the running VM another disk, which has a unit. The VM's user must be able to open the file. Nothing to do when it has the disk; when it rejects, the VM is
   * as before. Absent when the driver cannot.
   */
  plugDisk? (disk: VmDisk): Promise<void>
  /** Takes a disk with a unit away, which the guest must have let go of. Its file is closed when it resolves. Nothing to do when there is none. Goes with `plugDisk`. */
  unplugDisk? (id: string): Promise<void>
  /** Begins to note what the guest writes to a disk; one at a time for each, a new one ends the old one. Undefined when this VMM cannot; absent when the driver never can. */
  trackDisk? (id: string): Promise<VmDiskChanges | undefined>
  /** Lets go of the VM without ending it: closes sockets and timers. */
  release (): void
}

export interface HypervisorDriver {
  /** under which it fills the slot */
  readonly name: string
  /** Cached after the first call. */
  probe (): Promise<HypervisorProbe>
  /** Starts a VM. Resolves once the VMM answers and the guest's processors run; nothing stays behind when it rejects. */
  launch (spec: VmSpec, signal?: AbortSignal): Promise<Vm>
  /** Takes over a VM that an earlier server started. A vanished one gives a `Vm` whose state is `gone`; it does not throw. */
  attach (handle: VmHandle): Promise<Vm>
  readonly imaging?: HypervisorImaging
  /** Ends what the driver of a server that was killed did by itself: to be called before anything else. VMs run on. */
  open? (): Promise<void>
  /** Ends what the driver does by itself. VMs run on. */
  close? (): Promise<void>
  /** what of a `VmSpec` it can do beside the rest; whoever asks for more is refused */
  readonly features?: readonly ('hotplug-memory' | 'disk-io-limit' | 'host-devices' | 'balloon-control')[]
}

declare module '../plugins/manifest.ts' {
  interface Slots {
    readonly hypervisors: ReadonlyMap<string, HypervisorDriver>
  }
}
