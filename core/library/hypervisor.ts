// The slot `hypervisors`: the interface of a driver. Types only. The suite test/contracts/hypervisor.ts is the contract in executable form.
import type { Duplex } from 'node:stream'

export interface HypervisorProbe {
  readonly supported: boolean
  /** version of the VMM */
  readonly version?: string
  /** how guest instructions are run; found by booting a guest, never guessed */
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
   * For a disk that can be plugged and unplugged while the VM runs (feature `removable-disks`): its place, 0 to 63, unique among such disks of the VM. The guest finds it by its id, as a serial number.
   * Absent: the disk stays from the VM's start to its end, and the guest names it by its order.
   */
  readonly unit?: number
}

/** Guest memory in a file, so that the VM can be restored from a memory image. */
export interface VmMemoryFile {
  /** absolute path. The file exists, and `identity` may read and write it. */
  readonly path: string
  /**
   * `shared`: the VM writes the file, which becomes the memory file of an image once `capture` has returned. For `launch` it is empty
   * (or only holes); no other VM may use it, which the driver enforces for as long as the VMM lives.
   * `private`: the VM reads the file and keeps its writes to itself; any number of VMs may. For `restore` only. Where the driver's `HypervisorImaging.privateMemory` holds,
   * `identity` must be able to read the file, but need not reach its path.
   */
  readonly sharing: 'shared' | 'private'
  /** What a VM that mapped the same file had changed of it (`CaptureFiles.changesPath`), absolute: the VM goes on with that. Only with `private` memory, and only where `HypervisorImaging.privateMemory` holds. */
  readonly changes?: string
}

export interface VmNetwork {
  /** path of the network namespace that has the TAP; the VMM is started in it */
  readonly namespace: string
  /** name of the TAP device, which exists and which `identity` may use */
  readonly tap: string
  /** `02:00:00:aa:bb:cc` */
  readonly mac: string
}

/** A device of the host that one VM uses alone. */
export interface VmHostDevice {
  /** absolute path of its folder in sysfs; its driver must be one for this use, and `identity` may use the device file of its group */
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
  /** memory that is plugged in beside `memoryBytes` while the guest's kernel boots; a captured VM's state holds it, not a memory file. Absent: none */
  readonly hotplugBytes?: number
  /** most bytes per second that all disks together read and write; absent: no limit */
  readonly diskBytesPerSecond?: number
  /** folders of the control groups that the VMM is put in */
  readonly groups?: readonly string[]
  /** absent: memory that is in no file, which boots fastest; such a VM can still be captured */
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
   * Whether the guest can give unused memory back, and does so by itself where it can (`Vm.balloon`). No effect where the driver, or a device of the host, forbids it;
   * a VM that is restored can when the captured one could. A VM on `private` memory has the device and gives nothing back: what a guest gives back is cut out of the file, which is others' as well.
   */
  readonly balloon?: boolean
  /** files that the VMM appends to without the server. They exist and are writable for `identity`. */
  readonly files: {
    /** the guest kernel's console, and what the VMM itself prints */
    readonly vmm: string
    /** the program's output */
    readonly output: string
    /** the guest's last message: why the program ended */
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
  /** data that only the driver understands */
  readonly details?: Readonly<Record<string, unknown>>
}

/**
 * `running` and `paused`: as the VMM reports. `hung`: the VMM process exists and does not answer. `gone`: the VMM process has ended.
 */
export type VmStatus = 'running' | 'paused' | 'hung' | 'gone'

export interface VmState {
  readonly status: VmStatus
  /** one sentence, with `hung` */
  readonly reason?: string
}

/**
 * A VM at one moment: two files, and this plain JSON, which the caller stores. The state file holds the devices and processors, the
 * memory file the memory, as large as the guest's memory, with holes for zero pages. Neither contains its own path: both may be moved and copied.
 */
export interface MemoryImage {
  readonly driver: string
  readonly version: number
  readonly vmmVersion: string
  /** the value of `HypervisorImaging.key` for the VM that was booted; restored VMs keep it */
  readonly key: string
  /** what a VM must have in common with the image to be restored from it, by name: `cpu`, `disks`, … */
  readonly shape: Readonly<Record<string, string>>
  readonly vcpus: number
  readonly memoryBytes: number
  /** exact size of the state file, by which a truncated one is found */
  readonly stateBytes: number
  /** disk space of the memory file, without its holes; of an image with `changes`, of the file of changes alone */
  readonly memoryStoredBytes: number
  /** The memory is a base, which the captured VM mapped privately, and a file of what it had changed. */
  readonly changes?: true
  /** ISO 8601 */
  readonly capturedAt: string
}

export interface CaptureFiles {
  /** absolute; must not exist */
  readonly statePath: string
  /**
   * absolute; must not exist, unless `copyAhead` has made it. For a VM that has no memory file of its own (`VmImaging.memoryFile`); ignored for others. A driver may write to this name with `.changes` behind it meanwhile:
   * whoever finds a capture that was cut off removes both.
   */
  readonly memoryPath?: string
  /**
   * absolute; must not exist. For a VM that has a `VmImaging.memoryBase`: only what differs from that is written, and the image says so (`changes`). With a `memoryPath` beside it the driver writes all of the
   * memory when so much differs that the base is of little use.
   */
  readonly changesPath?: string
}

/** The operations of a VM whose driver makes memory images. */
export interface VmImaging {
  /** The `shared` file that the VM keeps its memory in; undefined when `capture` must write the memory out. */
  readonly memoryFile: string | undefined
  /** The file that the VM maps privately, when `capture` can write the differences from it alone. It must be there, unchanged, at each capture. */
  readonly memoryBase?: string
  /**
   * Copies memory that is in no memory file while the guest runs: the copy is of no single moment. A later `capture` to the same path then writes only the differences. Absent where
   * `capture` writes all memory in any case, or `memoryFile` can be copied. The caller removes what a failure leaves.
   * @param signal ends it, with its reason
   */
  copyAhead? (memoryPath: string, signal?: AbortSignal): Promise<void>
  /** Resolves when no processor of the guest runs and its finished disk writes are on disk. No effect on a paused VM. */
  pause (): Promise<void>
  /** Resolves when the guest runs again. No effect on a running VM. What a capture that was cut off has left with the VMM is removed. */
  resume (): Promise<void>
  /**
   * Pauses the VM and saves it; it stays paused, and its files agree with one another and with its disks until `resume`. After that, either
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
   * Called when the VM has all of its state, and awaited before its guest takes its first step: a server that dies from then on leaves a VM that the next one can `attach`, and `resume` if
   * it is still paused. When it rejects, so does the restore.
   */
  readonly beforeRun?: (handle: VmHandle) => Promise<void>
  /**
   * Resolves when the memory file has its content, which somebody is still writing; it has its size already. Only for a driver that `startsAhead`. When it rejects, so does the restore.
   */
  readonly memoryFilled?: Promise<void>
  /** ids of the disks without a unit that may have another size than the captured VM's, at a driver that `announcesDisks`: a guest that has its driver on them is told before it takes its first step. Others ignore it. */
  readonly otherDisks?: readonly string[]
}

/** Whether VMs can share a memory file and be saved as differences from it. Not those with memory that is plugged in. */
export interface PrivateMemory {
  /** Why they cannot here, in one sentence; undefined when they can. Found and remembered as `HypervisorImaging.refusal` is, whose answer comes first. */
  refusal (): Promise<string | undefined>
  /** Whether they can, as far as is known: tries nothing. */
  isProven (): Promise<boolean>
}

/** The operations of a driver that makes memory images; absent from others. */
export interface HypervisorImaging {
  /**
   * Whether a captured VM may stay paused for any time: while nobody is connected to its guest, nor was at the capture, no byte of its memory file and its disks changes; and
   * with `resume` it goes on as if it had never been captured; its image must have been given up before. Absent: it must be ended or resumed soon after the capture.
   */
  readonly keepsPaused?: boolean
  /** Whether `restore` starts the VMM while the memory file is being written, and waits for `RestoreOptions.memoryFilled` before it reads any of it. Absent: it wants the whole file. */
  readonly startsAhead?: boolean
  /** Whether the VMM resets no device, so that a guest that has used a disk must not take its driver from it, as a rehearsal does: the VMM would go on with queues that are no more. Absent: it does reset them. */
  readonly disksStayBound?: boolean
  /**
   * Whether a guest may have its driver on its disks when they become others, by `RestoreOptions.otherDisks` or by `Vm.replaceDisk` while it is paused, since the VMM tells it of their sizes; none of them may be in use in the guest.
   * Until it has been told, a disk has the old size for it, and so must not be larger. Absent: the guest finds the size only when it takes the driver.
   */
  readonly announcesDisks?: boolean
  /**
   * Why a VM like this cannot be saved and restored here, in one sentence; undefined when it can. Found by saving and restoring a small one, once for each VMM and kernel, and
   * remembered: the first call may take as long as a boot.
   */
  refusal (spec: Pick<VmSpec, 'hotplugBytes'>): Promise<string | undefined>
  /** VMs on `private` memory, with and without `changes`. Absent: the driver captures such a VM by writing all of its memory, or has none. */
  readonly privateMemory?: PrivateMemory
  /** Changes with everything that makes images of one VM useless, or wrong, for another: VMM, processor, devices, kernel arguments. Not with the content of kernel and disks. */
  key (spec: VmSpec): Promise<string>
  /**
   * Starts a VM where the image stopped, on `spec.memory`: the memory file of the image, or a copy (the VM owns a `shared` one from then on). Resolves once the
   * guest runs; nothing stays behind when it rejects (but a `shared` file may have been written). Disks, files, folder and user may differ from the captured VM's, the number and kind of disks without a unit may not. Disks with a unit must be the same, too, unless
   * the guest had not looked for any yet, as one that waits for its workload has not.
   */
  restore (spec: VmSpec, image: MemoryImage, statePath: string, options?: RestoreOptions): Promise<Vm>
}

/** Memory that the guest gives back to the host while it runs, and gets again when it needs more. */
export interface VmBalloon {
  /** all of the VM's memory, bytes */
  readonly wholeBytes: number
  /** memory that the guest has at this moment, bytes, as the VMM knows it */
  bytes (): Promise<number>
  /** Asks the guest to use only so much, bytes; it follows as far as it can, or not at all. `wholeBytes`: it may use all memory again. A restored VM begins without a request. */
  aim (bytes: number): Promise<void>
}

/** A part of a disk. */
export interface VmDiskRange { readonly offset: number, readonly bytes: number }

/** Records what the guest writes to a disk from some moment on. */
export interface VmDiskChanges {
  /** Every range that was written, and perhaps more; to be called once, while the VM is paused. The last range may reach beyond the end of the disk. */
  ranges (): Promise<readonly VmDiskRange[]>
  end (): Promise<void>
}

export interface Vm {
  readonly handle: VmHandle
  /** present when the driver makes memory images of this VM */
  readonly imaging?: VmImaging
  /** present when the VM was started with `VmSpec.balloon`, and the driver supports it */
  readonly balloon?: VmBalloon
  /** The last known state. The driver keeps it current (by events and its own heartbeat), so reading it costs nothing. */
  readonly state: VmState
  /** Called at each change of `state`; `gone` is the last call. Returns the unsubscriber. */
  onState (listener: (state: VmState) => void): () => void
  /** Opens the byte stream to the guest's first process. There is one at a time; a new one ends the old one. */
  connect (): Promise<Duplex>
  /** Ends the VMM at once and returns when its process is gone. Idempotent. */
  kill (): Promise<void>
  /** Resolves when the VMM process is gone. */
  wait (): Promise<void>
  /** Makes the VMM write its output to `path` from now on, without losing a byte. The old file is complete afterwards. */
  rotate (file: 'output' | 'vmm', path: string): Promise<void>
  /**
   * Replaces the image of a disk by another raw image, in the same mode. Only while the guest has no driver on that disk, since it reads the size once (but see `HypervisorImaging.announcesDisks`): a guest
   * that waits for its workload. The VM's user must be able to open the file. The old image is closed when it resolves; when it rejects, the disk is as before.
   * Absent when the driver cannot.
   */
  replaceDisk? (id: string, path: string): Promise<void>
  /** Changes the limit of `VmSpec.diskBytesPerSecond`; `undefined`: no limit. Absent when the driver cannot. */
  limitDisks? (bytesPerSecond: number | undefined): Promise<void>
  /**
   * Plugs another disk, which has a unit, into the running VM. The VM's user must be able to open the file. No effect when the VM has the disk; when it rejects, the VM is
   * as before. Absent when the driver cannot.
   */
  plugDisk? (disk: VmDisk): Promise<void>
  /** Unplugs a disk with a unit; the guest must have released it. Its file is closed when it resolves. No effect when there is none. Present together with `plugDisk`. */
  unplugDisk? (id: string): Promise<void>
  /** Begins to record what the guest writes to a disk; one record at a time for each disk, a new one ends the old one. Undefined when this VMM cannot; absent when the driver never can. */
  trackDisk? (id: string): Promise<VmDiskChanges | undefined>
  /** Releases the VM without ending it: closes sockets and timers. */
  release (): void
}

export interface HypervisorDriver {
  /** the name under which it fills the slot */
  readonly name: string
  /** Cached after the first call; a problem for a while, since a busy host may be the reason. */
  probe (): Promise<HypervisorProbe>
  /** Starts a VM. Resolves once the VMM answers and the guest's processors run; nothing stays behind when it rejects. */
  launch (spec: VmSpec, signal?: AbortSignal): Promise<Vm>
  /** Takes over a VM that an earlier server started. A VM that has ended gives a `Vm` whose state is `gone`; it does not throw. */
  attach (handle: VmHandle): Promise<Vm>
  readonly imaging?: HypervisorImaging
  /** Ends what the driver of a killed server was doing in the background: to be called before anything else. VMs run on. */
  open? (): Promise<void>
  /** Ends what the driver does in the background. VMs run on. */
  close? (): Promise<void>
  /** the optional parts of a `VmSpec` that it supports; a spec that needs others is refused */
  readonly features?: readonly ('hotplug-memory' | 'disk-io-limit' | 'host-devices' | 'removable-disks' | 'balloon-control')[]
  /** the most vCPUs that a VM of it may have; absent: no limit is known */
  readonly mostVcpus?: number
}

declare module '../plugins/manifest.ts' {
  interface Slots {
    readonly hypervisors: ReadonlyMap<string, HypervisorDriver>
  }
}
