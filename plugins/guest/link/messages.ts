// Writes the host's requests as fields, and reads the guest's answers.
import { randomBytes } from 'node:crypto'
import type { ExecResult, ExecSpec, GuestExit, GuestHello, GuestIdentity, GuestMount, GuestNetwork, GuestPhase, PathFacts, PutSpec, Rehearsal, SleepOptions, Workload } from '../contract.ts'
import { FieldReader, FieldWriter, Tag } from './fields.ts'
import { DEFAULT_SLEEP_MS, MAX_PATH_BYTES } from './limits.ts'
import { ProtocolViolation } from './violation.ts'

const PHASES: readonly GuestPhase[] = ['waiting', 'starting', 'running', 'asleep', 'exiting']
const TYPES: ReadonlyArray<NonNullable<PathFacts['type']>> = ['file', 'dir', 'symlink', 'other']
const MAX_SHORT_TEXT_BYTES = 256
/** bytes of seed for the guest's random generator, which counts all of them as entropy: as many as its pool holds */
const ENTROPY_BYTES = 64

function environment (env: Readonly<Record<string, string>> = {}): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`)
}

function encodeMount (mount: GuestMount): Buffer {
  return new FieldWriter().add(Tag.path, mount.path).add(Tag.type, 'volume').add(Tag.device, mount.device)
    .add(Tag.readonly, mount.readonly).add(Tag.overlayDevice, mount.overlayDevice).finish()
}

function encodeNetwork (network: GuestNetwork | undefined): Buffer | undefined {
  if (network === undefined) return undefined
  return new FieldWriter().add(Tag.mac, network.mac).add(Tag.address, network.address).add(Tag.gateway, network.gateway)
    .addAll(Tag.dns, network.dns ?? []).finish()
}

/** The fields that differ between clones, with the host's time and randomness of this moment. */
function addIdentity (fields: FieldWriter, identity: GuestIdentity, now: Date): FieldWriter {
  return fields.add(Tag.hostname, identity.hostname)
    .add(Tag.realtimeNs, BigInt(now.getTime()) * 1_000_000n).add(Tag.entropy, randomBytes(ENTROPY_BYTES))
    .add(Tag.network, encodeNetwork(identity.network)).add(Tag.newMachine, identity.newMachine)
}

/** `trustBytes`: length of the bundle that was sent before, when there is something to trust. */
export function encodeRun (workload: Workload, now: Date, trustBytes?: number): Buffer {
  const fields = new FieldWriter().add(Tag.kind, 'run')
    .addAll(Tag.argv, workload.argv).addAll(Tag.env, environment(workload.env))
    .add(Tag.cwd, workload.cwd).add(Tag.user, workload.user)
  addIdentity(fields, workload, now)
  for (const mount of workload.mounts) fields.add(Tag.mount, encodeMount(mount))
  return fields.add(Tag.kernelHeaders, workload.kernelHeaders).add(Tag.agent, workload.agent).add(Tag.trust, trustBytes).finish()
}

export function encodeSleep ({ sync, timeoutMs = DEFAULT_SLEEP_MS }: SleepOptions): Buffer {
  return new FieldWriter().add(Tag.kind, 'sleep').add(Tag.sync, sync).add(Tag.timeoutMs, timeoutMs).finish()
}

export function encodeFlush (): Buffer {
  return new FieldWriter().add(Tag.kind, 'flush').finish()
}

export function encodeWake (identity: GuestIdentity, now: Date): Buffer {
  return addIdentity(new FieldWriter().add(Tag.kind, 'wake'), identity, now).finish()
}

export function encodeRehearse ({ kernelHeaders, ...identity }: Rehearsal, now: Date): Buffer {
  return addIdentity(new FieldWriter().add(Tag.kind, 'rehearse').add(Tag.kernelHeaders, kernelHeaders), identity, now).finish()
}

export function encodeBind (): Buffer {
  return new FieldWriter().add(Tag.kind, 'bind').finish()
}

export function encodeMountRequest (mount: GuestMount): Buffer {
  return new FieldWriter().add(Tag.kind, 'mount').add(Tag.mount, encodeMount(mount)).finish()
}

export function encodeUnmount ({ device, overlayDevice }: Pick<GuestMount, 'device' | 'overlayDevice'>): Buffer {
  return new FieldWriter().add(Tag.kind, 'unmount').add(Tag.device, device).add(Tag.overlayDevice, overlayDevice).finish()
}

export function encodeExec (spec: ExecSpec): Buffer {
  return new FieldWriter().add(Tag.kind, 'exec')
    .addAll(Tag.argv, spec.argv).addAll(Tag.env, environment(spec.env)).add(Tag.cwd, spec.cwd).add(Tag.user, spec.user)
    .add(Tag.tty, spec.tty !== undefined).add(Tag.rows, spec.tty?.rows).add(Tag.cols, spec.tty?.cols)
    .add(Tag.timeoutMs, spec.timeoutMs).finish()
}

export function encodePut (spec: PutSpec): Buffer {
  return new FieldWriter().add(Tag.kind, 'put').add(Tag.path, spec.path).add(Tag.type, spec.type).add(Tag.mode, spec.mode)
    .add(Tag.uid, spec.uid).add(Tag.gid, spec.gid).add(Tag.mtime, spec.mtime).add(Tag.basename, spec.basename).finish()
}

export function encodePathRequest (kind: 'get' | 'stat', path: string, follow: boolean): Buffer {
  return new FieldWriter().add(Tag.kind, kind).add(Tag.path, path).add(Tag.follow, follow).finish()
}

export function encodePortRequest (kind: 'listen' | 'accept', port: number): Buffer {
  return new FieldWriter().add(Tag.kind, kind).add(Tag.port, port).finish()
}

export function encodeConnect (port: number, address: string | undefined): Buffer {
  return new FieldWriter().add(Tag.kind, 'connect').add(Tag.port, port).add(Tag.address, address).finish()
}

export function encodeShutdown (graceMs: number, signal: number | undefined): Buffer {
  return new FieldWriter().add(Tag.kind, 'shutdown').add(Tag.graceMs, graceMs).add(Tag.signal, signal).finish()
}

export type Control = { readonly op: 'resize', readonly rows: number, readonly cols: number } |
  { readonly op: 'signal', readonly signal: number } | { readonly op: 'cancel' }

export function encodeControl (control: Control): Buffer {
  const fields = new FieldWriter().add(Tag.kind, control.op)
  if (control.op === 'resize') fields.add(Tag.rows, control.rows).add(Tag.cols, control.cols)
  if (control.op === 'signal') fields.add(Tag.signal, control.signal)
  return fields.finish()
}

function required<T> (value: T | undefined, what: string): T {
  if (value === undefined) throw new ProtocolViolation(`left out ${what}`)
  return value
}

function oneOf<T extends string> (value: string | undefined, known: readonly T[], what: string): T | undefined {
  if (value === undefined) return undefined
  const found = known.find((one) => one === value)
  if (found === undefined) throw new ProtocolViolation(`sent an unknown ${what}`)
  return found
}

/** 0 to 255: the exit codes that a process can have. */
function exitCode (fields: FieldReader): number | undefined {
  const code = fields.number(Tag.exitCode)
  if (code !== undefined && code > 255) throw new ProtocolViolation(`sent the exit code ${code}`)
  return code
}

function signalNumber (fields: FieldReader): number {
  const signal = fields.number(Tag.signal) ?? 0
  if (signal > 64) throw new ProtocolViolation(`sent the signal ${signal}`)
  return signal
}

function decodeExit (fields: FieldReader): GuestExit {
  const error = fields.prose(Tag.error)
  return {
    exitCode: required(exitCode(fields), 'the exit code'),
    signal: signalNumber(fields),
    oom: fields.flag(Tag.oom) ?? false,
    ...error === undefined ? {} : { error }
  }
}

export interface Hello { readonly hello: GuestHello, readonly exit: GuestExit | undefined }

export function decodeHello (payload: Buffer): Hello {
  const fields = new FieldReader(payload)
  const phase = required(oneOf(fields.text(Tag.phase, MAX_SHORT_TEXT_BYTES), PHASES, 'phase'), 'its phase')
  const hello: GuestHello = {
    protocol: required(fields.number(Tag.protocol), 'the protocol version'),
    phase,
    kernel: required(cleanShortText(fields, Tag.kernel), 'its kernel'),
    bootId: required(cleanShortText(fields, Tag.bootId), 'its boot id'),
    memoryTotalBytes: required(fields.number(Tag.memoryTotal), 'its memory size'),
    uptimeMs: required(fields.number(Tag.uptimeMs), 'its uptime'),
    agent: fields.flag(Tag.agent) ?? true
  }
  const exit = phase === 'exiting' && fields.has(Tag.exitCode) ? decodeExit(fields) : undefined
  return { hello, exit }
}

function cleanShortText (fields: FieldReader, tag: Tag): string | undefined {
  fields.text(tag, MAX_SHORT_TEXT_BYTES)
  return fields.prose(tag)
}

export type GuestEvent = { readonly name: 'started' } | { readonly name: 'exited', readonly exit: GuestExit } | { readonly name: 'unknown' }

/** Unknown events, which a newer guest may send, are ignored. */
export function decodeEvent (payload: Buffer): GuestEvent {
  const fields = new FieldReader(payload)
  const name = required(fields.text(Tag.kind, MAX_SHORT_TEXT_BYTES), 'the name of an event')
  if (name === 'started') return { name }
  if (name === 'exited') return { name, exit: decodeExit(fields) }
  return { name: 'unknown' }
}

/** Why the guest refused, when its result is a refusal. */
export interface Refusal { readonly message: string, readonly errno: number | undefined, readonly exitCode: number | undefined }

export function decodeRefusal (fields: FieldReader): Refusal | undefined {
  const message = fields.prose(Tag.error)
  if (message === undefined) return undefined
  const errno = fields.number(Tag.errno)
  if (errno !== undefined && errno > 4095) throw new ProtocolViolation(`sent the error number ${errno}`)
  return { message, errno, exitCode: exitCode(fields) }
}

/** A result without an exit code is a refusal (the agent is disabled, …) and not for this function. */
export function decodeExecResult (fields: FieldReader): ExecResult {
  const error = fields.prose(Tag.error)
  return {
    exitCode: required(exitCode(fields), 'the exit code'),
    signal: signalNumber(fields),
    ...error === undefined ? {} : { error }
  }
}

export function decodePutResult (fields: FieldReader): { readonly bytes: number } {
  return { bytes: fields.number(Tag.bytes) ?? 0 }
}

export function decodeFacts (fields: FieldReader): PathFacts {
  const mode = fields.number(Tag.mode)
  if (mode !== undefined && mode > 0o7777) throw new ProtocolViolation('sent permission bits that do not exist')
  return {
    exists: fields.flag(Tag.exists) ?? true,
    type: oneOf(fields.text(Tag.type, MAX_SHORT_TEXT_BYTES), TYPES, 'file type'),
    mode,
    sizeBytes: fields.size(Tag.size),
    linkTarget: fields.text(Tag.linkTarget, MAX_PATH_BYTES),
    uid: fields.number(Tag.uid),
    gid: fields.number(Tag.gid),
    mtime: fields.seconds(Tag.mtime)
  }
}
