// Runs one command in the build's VM to its end. Its output comes from the guest: it is bounded, and never trusted.
import type { Readable, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { GuestLink } from '../../guest/contract.ts'

const MAX_KEPT_BYTES = 2 ** 20
/** One pipe for both outputs, so that their lines stay in order. The shell never parses the arguments. */
const MERGED = ['/bin/sh', '-c', 'exec "$@" 2>&1', 'sh']

export interface GuestCommand {
  readonly argv: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly input?: AsyncIterable<Buffer>
  readonly signal: AbortSignal
  /** gets both outputs as they come; they are then not kept */
  readonly output?: (chunk: Buffer) => void
  /** how much of an output is kept; 1 MiB when absent */
  readonly maxBytes?: number
}

export interface GuestOutcome {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** @throws the signal's reason, or the link's error */
export async function runInGuest (link: GuestLink, command: GuestCommand): Promise<GuestOutcome> {
  const { argv, env, input, signal, output, maxBytes = MAX_KEPT_BYTES } = command
  signal.throwIfAborted()
  const session = link.exec({ argv: output === undefined ? argv : [...MERGED, ...argv], env })
  const abort = (): void => session.cancel()
  signal.addEventListener('abort', abort, { once: true })
  try {
    const stdout = collect(session.stdout, maxBytes, output)
    const stderr = collect(session.stderr, maxBytes)
    const fed = feed(input, session.stdin)
    fed.catch(abort)
    const result = await session.result
    signal.throwIfAborted()
    await fed
    if (result.error !== undefined) return { exitCode: result.exitCode, stdout: stdout(), stderr: result.error }
    return { exitCode: result.exitCode, stdout: stdout(), stderr: stderr() }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** The command's standard output. @throws when it fails */
export async function outputOf (link: GuestLink, argv: readonly string[], signal: AbortSignal, maxBytes?: number): Promise<string> {
  const { exitCode, stdout, stderr } = await runInGuest(link, { argv, signal, maxBytes })
  if (exitCode !== 0) throw new Error(`${argv.join(' ')} in the build's VM exited with ${exitCode}: ${stderr.trim().slice(-500)}`)
  return stdout
}

/** Writes a file; its folder is made if necessary. */
export async function putFile (link: GuestLink, path: string, content: string | Buffer, mode = 0o644): Promise<void> {
  const upload = link.put({ path, type: 'file', mode, uid: 0, gid: 0 })
  upload.content.end(content)
  await upload.result
}

function collect (stream: Readable, maxBytes: number, output?: (chunk: Buffer) => void): () => string {
  const kept: Buffer[] = []
  let bytes = 0
  stream.on('data', (chunk: Buffer) => {
    if (output !== undefined) return output(chunk)
    if (bytes < maxBytes) kept.push(chunk)
    bytes += chunk.length
  })
  return () => Buffer.concat(kept).toString('utf8')
}

/** Rejects when the input breaks; a command that ends without having read all of it reports that by its exit code. */
async function feed (input: AsyncIterable<Buffer> | undefined, stdin: Writable): Promise<void> {
  if (input === undefined) {
    stdin.end()
    return
  }
  const broken: unknown[] = []
  const source = async function * (): AsyncGenerator<Buffer> {
    try {
      yield * input
    } catch (error) {
      broken.push(error)
      throw error
    }
  }
  try {
    await pipeline(source, stdin)
  } catch (error) {
    if (broken.length > 0) throw error
  }
}
