// Compresses memory files and expands them again, by the host's tools. Holes cost nothing in either direction: a memory file is mostly holes.
//
// The compressed file is a tar with one member, because tar skips holes without reading them and makes them again; the compressors by themselves see
// only a stream, for which a file of 4 GB is always 4 GB of work.
import { lstat, open, rm } from 'node:fs/promises'
import { basename, dirname, resolve } from 'node:path'
import type { HostCommands } from '../contracts/services.ts'
import { defineError } from '../errors/define.ts'
import { hasCode } from '../errors/system-code.ts'
import type { DiskSpace } from '../fs/disk-space.ts'
import { withRoom } from '../fs/with-room.ts'
import { unlessAborted } from '../jobs/unless-aborted.ts'
import { HostCommandFailed } from '../process/errors.ts'
import { removeTree, syncFile, syncFolder } from '../fs/durable.ts'

export type CompressionAlgorithm = 'zstd' | 'lz4'

export interface Compression {
  readonly algorithm: CompressionAlgorithm
  /** zstd 1 to 19, lz4 0 to 9 */
  readonly level: number
}

/** The message says why, in words for the caller who asked for the compression; the cause holds what the tool printed. */
export const CompressionFailed = defineError('compression_failed', 'internal', (why: string) => `the memory could not be compressed: ${why}`)

export const MemoryDamaged = defineError('memory_damaged', 'wrong-state', (why: string) => `the compressed memory cannot be expanded: ${why}`)

const MEMBER = 'memory'
// The tool must not outlive a server that is killed; tar's own children end with their pipe.
const TIED = ['--pdeathsig', 'KILL', '--']
// VMs have priority. -t: where the class of I/O cannot be set, the work goes on without.
const HUMBLE = ['nice', '-n', '19', 'ionice', '-t', '-c', '3']
// 64 KiB, the capacity of a pipe.
const BLOCKING = '--blocking-factor=128'

/** The name that a memory file compressed in this way has. */
export function compressedName (algorithm: CompressionAlgorithm): string {
  return { zstd: 'memory.tar.zst', lz4: 'memory.tar.lz4' }[algorithm]
}

/**
 * Compresses a file that nobody writes meanwhile; `to` must not exist. Runs at the lowest priority. The result is on disk when this resolves with its bytes;
 * nothing is left of it when this rejects.
 * @throws CompressionFailed, HostCommandMissing, the signal's reason
 */
export async function compressMemory (commands: HostCommands, from: string, to: string, compression: Compression, signal?: AbortSignal): Promise<number> {
  signal?.throwIfAborted()
  const { algorithm, level } = compression
  if (!(await lstat(from)).isFile()) throw CompressionFailed(`${from} is no file`)
  await requireTools(commands, algorithm)
  // Created here, so that what is removed below is ours, and with permissions that only the caller widens.
  await (await open(to, 'wx', 0o600)).close()
  try {
    const source = resolve(from)
    await commands.run('setpriv', [
      ...TIED, ...HUMBLE,
      'tar', '--create', '--sparse', '--hole-detection=seek', '--format=gnu', BLOCKING, '--force-local', '--no-recursion',
      '--owner=0', '--group=0', '--mode=0600', `--transform=s|.*|${MEMBER}|`,
      `--use-compress-program=${algorithm} -${level}${algorithm === 'zstd' ? ' -T1' : ''}`,
      `--file=${resolve(to)}`, `--directory=${dirname(source)}`, '--', basename(source)
    ], { ...signal === undefined ? {} : { signal } })
    // A sync cannot be stopped, and a caller that no longer needs its file does not have to wait for it.
    await unlessAborted(signal, syncWithName(to))
    const { size } = await lstat(to)
    signal?.throwIfAborted()
    return size
  } catch (error) {
    await rm(to, { force: true })
    throw compressionError(error)
  }
}

/** The same on the disk of the data folder, of which stays free what must. @throws DiskShort as well */
export async function compressWithRoom ({ commands, disk }: { readonly commands: HostCommands, readonly disk: DiskSpace }, from: string, to: string, compression: Compression, signal: AbortSignal): Promise<number> {
  return await withRoom(disk, [signal], async (either) => await compressMemory(commands, from, to, compression, either))
}

/**
 * Expands a file of `compressMemory`; `to` must not exist. Not synced. Resolves with its bytes, holes included; nothing is left of it when this rejects.
 * @throws MemoryDamaged, HostCommandMissing, an error with the code ENOSPC, the signal's reason
 */
export async function expandMemory (commands: HostCommands, from: string, to: string, algorithm: CompressionAlgorithm, signal?: AbortSignal): Promise<number> {
  signal?.throwIfAborted()
  await requireSource(from)
  await requireTools(commands, algorithm)
  await (await open(to, 'wx', 0o600)).close()
  try {
    const target = resolve(to)
    // Only this one member is extracted, and only as a file with this name in this folder.
    await commands.run('setpriv', [
      ...TIED,
      'tar', '--extract', BLOCKING, '--force-local', '--no-recursion', '--no-same-owner', '--no-same-permissions', '--touch',
      `--transform=s|^${MEMBER}$|${asReplacement(basename(target))}|`,
      `--use-compress-program=${algorithm}`,
      `--file=${resolve(from)}`, `--directory=${dirname(target)}`, '--', MEMBER
    ], { ...signal === undefined ? {} : { signal } })
    const facts = await lstat(to)
    if (!facts.isFile() || facts.nlink !== 1) throw MemoryDamaged('it holds no memory')
    return facts.size
  } catch (error) {
    await removeTree(to)
    throw expansionError(error)
  }
}

/** tar reports a missing compressor in words only. @throws HostCommandMissing */
async function requireTools (commands: HostCommands, algorithm: CompressionAlgorithm): Promise<void> {
  for (const tool of ['tar', algorithm]) await commands.run(tool, ['--version'])
}

async function requireSource (path: string): Promise<void> {
  try {
    if (!(await lstat(path)).isFile()) throw MemoryDamaged('it is no file')
  } catch (error) {
    throw hasCode(error, 'ENOENT') ? MemoryDamaged.from(error, 'its file is gone') : error
  }
}

async function syncWithName (path: string): Promise<void> {
  await syncFile(path)
  await syncFolder(dirname(path))
}

/** Quotes text for the replacement of tar's `s|…|…|`. */
function asReplacement (name: string): string {
  return name.replace(/[\\|&\n]/g, (character) => `\\${character}`)
}

function compressionError (error: unknown): unknown {
  if (!(error instanceof HostCommandFailed)) return error
  // lz4 does not say why it could not write.
  if (/no space left|quota exceeded|write error/i.test(error.failure.stderr)) return CompressionFailed.from(error, 'the compressed file could not be written; the disk may be full')
  return CompressionFailed.from(error, howItEnded(error))
}

function expansionError (error: unknown): unknown {
  if (!(error instanceof HostCommandFailed) || error.failure.reason !== 'exit') return error
  const { stderr } = error.failure
  // With the code of the system's own calls, so that callers need to know one form only. When part of the last block fits, tar says nothing but that.
  if (/no space left|quota exceeded|wrote only/i.test(stderr)) return Object.assign(new Error('ENOSPC: no space left on device', { cause: error }), { code: 'ENOSPC' })
  return /cannot (write|open|unlink)/i.test(stderr) ? error : MemoryDamaged.from(error, howItEnded(error))
}

/** The tool's first words: later lines are consequences of the first. */
function howItEnded ({ failure }: HostCommandFailed): string {
  const [first = ''] = failure.stderr.split('\n')
  // The compressors' name for their standard input tells nobody anything.
  return first === '' ? `the tool ended by ${failure.signal ?? `exit code ${String(failure.exitCode)}`}` : first.replace(/^.*\/\*stdin\*\\ ?: /, '').trim()
}
