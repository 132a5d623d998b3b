// What other plugins may know of the guest: the bootable system and the conversation with its first process. Types only.
import type { Duplex, Readable, Writable } from 'node:stream'

export interface GuestSystem {
  /** Debian package version of the kernel with a hash of the initrd: part of every template's and snapshot's key */
  readonly version: string
  readonly kernel: string
  readonly initrd: string
  /** kernel arguments that every VM gets */
  readonly arguments: readonly string[]
}

export interface GuestService {
  /** The system to boot; fetched and built on first use, then cached in `<data>/system/`. */
  system (): Promise<GuestSystem>
  /**
   * The name of the disk with the modules and headers of that system's kernel; fetched and built on first use. It stays valid for VMs that were made with it, also after
   * the kernel has changed. Undefined when the configuration gives it to no VM. @throws kernel_headers_unavailable
   */
  kernelHeaders (): Promise<string | undefined>
  /** The path of the disk of this name, a read-only file that all VMs share. */
  kernelHeadersDisk (name: string): string
  /**
   * The variables that a program needs so that it finds the authorities of `Workload.trust`, in addition to those of `image` and the user. Nothing
   * that the user, `env`, sets is changed; what an image sets is, since its paths may lead to files without the authority.
   */
  trustEnvironment (env: Readonly<Record<string, string>>, image: Readonly<Record<string, string>>): Readonly<Record<string, string>>
  readonly messageSizes: MessageSizes
  /** Starts the conversation on a freshly opened stream. Never rejects for what the guest does: the link closes with a reason. */
  link (stream: Duplex): GuestLink
}

/** The bytes of the messages in which a guest is told a workload, or a command with all of its environment. One that has more than `most` is refused (errno 7). */
export interface MessageSizes {
  readonly most: number
  workload (workload: Workload): number
  command (spec: ExecSpec): number
}

/** `asleep`: the program is frozen, for a memory image. It stays so, also for a new link, until `wake` or `shutdown`. */
export type GuestPhase = 'waiting' | 'starting' | 'running' | 'asleep' | 'exiting'

export interface GuestHello {
  readonly protocol: number
  readonly phase: GuestPhase
  readonly kernel: string
  /** of the clone, once its program has been started: until then clones of one template have the same id */
  readonly bootId: string
  readonly memoryTotalBytes: number
  readonly uptimeMs: number
  /** whether exec, cp and stat are served */
  readonly agent: boolean
}

export interface GuestExit {
  readonly exitCode: number
  /** 0 when the program was not killed by a signal */
  readonly signal: number
  readonly oom: boolean
  /** why it could not start, for people */
  readonly error?: string
}

export interface GuestMount {
  readonly path: string
  /** `serial:NAME`, the id that the disk has in the VM; or a device node (`/dev/vdc`) */
  readonly device: string
  readonly readonly: boolean
  /** the same for an ext4 of the instance's own that takes writes; only with `readonly` */
  readonly overlayDevice?: string
}

export interface GuestNetwork {
  /** `02:00:00:aa:bb:cc` */
  readonly mac?: string
  /** with its prefix length: `10.1.0.5/24` */
  readonly address?: string
  readonly gateway?: string
  readonly dns?: readonly string[]
}

/** What makes a clone of a memory image another machine. The link adds the host's clock and fresh entropy to each. */
export interface GuestIdentity {
  /** absent: unchanged */
  readonly hostname?: string
  /** Replaces the device's configuration. Absent: the network is left alone. */
  readonly network?: GuestNetwork
  /**
   * The clone is a machine of its own, not one that goes on: it gets another boot id and, unless its image brings one, another
   * machine id.
   */
  readonly newMachine?: boolean
}

export interface SleepOptions {
  /** Writes the program's data to its disks, so that they are complete without the memory too. Default true. */
  readonly sync?: boolean
  /** Time within which the program must be frozen and its disks be written; otherwise it runs on. Default 10,000, at most 600,000. */
  readonly timeoutMs?: number
}

/** Authorities that the guest trusts besides those of its image. */
export interface GuestTrust {
  /** one certificate, PEM; at most 16 KiB */
  readonly certificate: string
  /** OpenSSL's hash of its subject, 8 hexadecimal digits: its name in a folder of certificates */
  readonly subjectHash: string
  /** PEM of all authorities that an image without any is given, the certificate above among them; at most 1 MiB */
  readonly bundle: string
}

export interface Workload {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string
  /** an image's USER; empty for root */
  readonly user: string
  readonly hostname: string
  readonly mounts: readonly GuestMount[]
  readonly network?: GuestNetwork
  readonly trust?: GuestTrust
  /** device of the disk of `kernelHeaders` in the VM (`/dev/vdc`), whose files the root shows where the image has none; absent: the VM has no such disk */
  readonly kernelHeaders?: string
  /** the first start of a copy of another instance's disk; see `GuestIdentity` */
  readonly newMachine?: boolean
  /** whether exec, cp and stat are to be served */
  readonly agent: boolean
}

/** What a rehearsed start, or waking, has of the real one. */
export type Rehearsal = Pick<Workload, 'kernelHeaders' | 'network' | 'newMachine'>

export interface ExecSpec {
  readonly argv: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly user?: string
  readonly tty?: { readonly rows: number, readonly cols: number }
  readonly timeoutMs?: number
}
export interface ExecResult {
  readonly exitCode: number
  readonly signal: number
  readonly error?: string
}
export interface ExecSession {
  /** ends the command's standard input when ended; back-pressure reaches the guest */
  readonly stdin: Writable
  readonly stdout: Readable
  /** empty with a tty */
  readonly stderr: Readable
  /**
   * Resolves after both outputs have been read to their end (one that nobody has begun to read is not waited for); rejects with
   * `GuestLoss` when the link breaks, with `GuestRefusal` when the guest serves no commands. A program that cannot be
   * started is a result (126 or 127, with `error`).
   */
  readonly result: Promise<ExecResult>
  /** Like `signal`, resolves when a further one may be sent: the guest reads what it is sent, or the command has ended. Never rejects. */
  resize (rows: number, cols: number): Promise<void>
  signal (signal: number): Promise<void>
  /** Kills the command and all of its process group. */
  cancel (): void
}

export interface PathFacts {
  readonly exists: boolean
  readonly type?: 'file' | 'dir' | 'symlink' | 'other'
  readonly mode?: number
  readonly sizeBytes?: number
  readonly linkTarget?: string
  readonly uid?: number
  readonly gid?: number
  /** seconds since the epoch */
  readonly mtime?: number
}

export interface PutSpec {
  readonly path: string
  readonly type: 'file' | 'dir'
  readonly mode: number
  readonly uid?: number
  readonly gid?: number
  readonly mtime?: number
  /** docker-cp semantics: when `path` is an existing folder, the entry is made inside it under this name */
  readonly basename?: string
}
export interface GuestUpload {
  readonly content: Writable
  readonly result: Promise<{ readonly bytes: number }>
  cancel (): void
}

export interface GuestEntry extends PathFacts {
  /** relative to the requested path, without `.` and `..` parts; empty for itself */
  readonly path: string
  /** with `type` undefined: why this entry could not be read */
  readonly error?: string
  /** the content, for files; bytes that are unread when the next entry is asked for are lost */
  readonly content?: Readable
}

export interface ConnectOptions {
  /** IPv4 address of the guest; 127.0.0.1 when absent */
  readonly address?: string
  /** ends the attempt to connect; an established connection stays */
  readonly signal: AbortSignal
}

/** A port of the guest's loopback whose connections come to the host. */
export interface GuestListener {
  /** Stops listening; open connections go on until one of their ends closes. Idempotent. */
  close (): void
}

/**
 * The guest refused. Every failed call of a link rejects with this or with `GuestLoss`; their `code` differs.
 * The caller of the link decides by `errno` what a refusal means to an API caller: uncaught it is an internal error.
 */
export interface GuestRefusal extends Error {
  readonly code: 'guest_refused'
  /** Linux number: 2 no such file, 13 permission denied, 28 no space, 95 the agent is disabled, … */
  readonly errno?: number
  /** of `run`: 126 or 127 when the program could not be started */
  readonly exitCode?: number
}
/** The link ended before an answer came; `message` says why. */
export interface GuestLoss extends Error {
  readonly code: 'guest_gone'
}

export interface PathOptions {
  /** whether the path of a symbolic link stands for what the link leads to */
  readonly follow: boolean
  /** cancels the request, which then rejects with the signal's reason: a file system of the guest may hang for ever */
  readonly signal?: AbortSignal
}

/**
 * A conversation. Streams that it hands out may be left unread, or fail without a listener: their errors are also in the call's result,
 * and an unhandled one does not end the server. Failures are `GuestRefusal` or `GuestLoss`.
 */
export interface GuestLink {
  /** The first HELLO; rejects with `GuestLoss` when the link ends before it. */
  readonly hello: Promise<GuestHello>
  /**
   * Sends the workload. Resolves when the program has started; rejects with `GuestRefusal` when it could not, and then the guest ends, unless it is of an older system or was never asked. On the first link to
   * a VM it may be called before HELLO has come, which saves a round trip; on a later link (after a restart of the server) wait
   * for `hello` first: the guest may be in the middle of a frame, and once a workload was sent the link cannot ask again.
   */
  run (workload: Workload): Promise<void>
  /**
   * Freezes the program and all commands, and writes the disks; resolves when the VM may be paused and its memory be saved.
   * Idempotent. Rejects, and the program runs on, when it cannot be done in time or the guest is not running (errno 11, 108).
   * Works without the agent. A link that ends before the answer undoes it; after the answer only `wake` and `shutdown` do.
   */
  sleep (options?: SleepOptions): Promise<void>
  /**
   * Writes the program's data to its disks while it runs on, so that a later `sleep` takes less time. Rejects with `GuestRefusal` when that takes longer than 10 s, the guest is not
   * running, or it is of a version that does not know this (errno 22). Works without the agent.
   */
  flush (): Promise<void>
  /**
   * Gives the machine the host's time, fresh entropy and this identity, then lets the program run on. Resolves when it does;
   * rejects, and the program stays asleep, when any of it cannot be applied. Idempotent, also for a program that is awake.
   * Waits for HELLO by itself. Works without the agent.
   */
  wake (identity?: GuestIdentity): Promise<void>
  /**
   * Lets a guest that waits for its workload rehearse a start on its current disks: drivers, mounts, a process, and back. Its only lasting
   * effects are a faster start, and the network that it was given; the disks have no driver again, but for those that `bind` has given theirs, and may be replaced.
   * Lets a guest that is asleep rehearse its waking, and a command: all that `wake` does but letting the program run on. It has the identity that it was given until it is woken with another one.
   * Resolves when done; rejects with `GuestRefusal` in another phase.
   */
  rehearse (options?: Rehearsal): Promise<void>
  /**
   * Has a guest that waits for its workload give its disks their driver now, so that its start, and that of its clones, need not. The disks may be replaced from then on only where the VMM tells the guest
   * of their sizes (`HypervisorImaging.announcesDisks`). Resolves when done, also when they had it; rejects with `GuestRefusal` in another phase.
   */
  bind (): Promise<void>
  /**
   * Mounts a volume, whose disk the VM already has, while the program runs. Resolves when it is mounted, also when it was mounted before. Rejects with `GuestRefusal` when it
   * cannot be mounted, and then it is not. Works without the agent. Not while the guest sleeps (errno 11) or ends (108).
   */
  mount (mount: GuestMount): Promise<void>
  /**
   * Unmounts a volume and releases its disks in the guest, so that they may be detached. Resolves also when it was not mounted. Rejects with errno 16 when anything in
   * the guest uses it, and then nothing has changed.
   */
  unmount (mount: Pick<GuestMount, 'device' | 'overlayDevice'>): Promise<void>
  exec (spec: ExecSpec): ExecSession
  stat (path: string, options: PathOptions): Promise<PathFacts>
  put (spec: PutSpec): GuestUpload
  get (path: string, options: PathOptions): AsyncIterable<GuestEntry>
  /**
   * Listens on 127.0.0.1:`port` in the guest, for its programs. Each connection goes to `accept` as a stream, with half-closing and back-pressure; beyond the limit on channels
   * (64 with everything else) others wait in the guest. Needs no network device. Resolves when it listens; rejects with `GuestRefusal` (errno 98: the port is taken). Ends with the link.
   */
  listen (port: number, accept: (connection: Duplex) => void): Promise<GuestListener>
  /**
   * Connects to a program of the guest. Resolves when the connection is established; rejects with `GuestRefusal` when it is not (errno 111: nobody listens; 22: the guest is of an older
   * system and knows no such call). Needs no network device. Half-closing and back-pressure are as with `listen`; ends with the link.
   */
  connect (port: number, options: ConnectOptions): Promise<Duplex>
  /** Asks for a graceful end: SIGTERM (or `signal`) to the program, SIGKILL after `graceMs`, power off. Resolves when the guest has confirmed the request. */
  shutdown (graceMs: number, signal?: number): Promise<void>
  /** Called once, also when the program runs already. Returns the unsubscriber. */
  onStarted (listener: () => void): () => void
  /** Called once, also when the exit is already known. Returns the unsubscriber. */
  onExited (listener: (exit: GuestExit) => void): () => void
  /** Resolves when the link has ended, with the reason. */
  readonly closed: Promise<string>
  close (): void
}

declare module '../../core/plugins/manifest.ts' {
  interface Cradle {
    readonly guest: GuestService
  }
}
