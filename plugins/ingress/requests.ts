// The log of requests of each instance: nginx writes it, one file per instance; this file bounds, reads and removes it.
import { constants } from 'node:fs'
import { open, readdir, rename, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../../core/errors/system-code.ts'
import { followLines } from './follow.ts'
import type { RequestEntry } from './schemas.ts'

const NAME = /^([a-z0-9]{1,64})\.jsonl(\.1)?$/
const CHECK_MS = 5000
/** bytes that are read, from the end of a file */
const MOST_READ = 1_048_576
const LAST_BYTES = 16_384

export class RequestLogs {
  readonly #folder: string
  readonly #maxBytes: number
  #timer: NodeJS.Timeout | undefined
  #work: Promise<void> = Promise.resolve()

  constructor (folder: string, maxBytes: number) {
    this.#folder = folder
    this.#maxBytes = maxBytes
  }

  /** Looks after the files from now on. @param isKnown whether there is such an instance @param onError gets failures to bound or remove a file */
  start (isKnown: (instanceId: string) => boolean, onError: (error: unknown) => void): void {
    this.#timer = setInterval(() => { this.#work = this.#look(isKnown).catch(onError) }, CHECK_MS).unref()
  }

  async #look (isKnown: (instanceId: string) => boolean): Promise<void> {
    await this.bound()
    // A request that was under way as its instance was deleted is written later, to a file that nginx makes for it.
    await this.retainOnly(isKnown)
  }

  async close (): Promise<void> {
    clearInterval(this.#timer)
    await this.#work
  }

  /** nginx reopens its files within 5 s, so a renamed file stops growing. */
  async bound (): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      if (!name.endsWith('.jsonl')) continue
      const path = join(this.#folder, name)
      if ((await sizeOf(path)) > this.#maxBytes) await rename(path, `${path}.1`)
    }
  }

  async remove (instanceId: string): Promise<void> {
    for (const name of [`${instanceId}.jsonl`, `${instanceId}.jsonl.1`]) await rm(join(this.#folder, name), { force: true })
  }

  /** Ids of instances that had requests. */
  async instances (): Promise<string[]> {
    return (await readdir(this.#folder)).flatMap((name) => NAME.exec(name)?.[1] ?? [])
  }

  /** Removes the logs of instances that no longer exist. */
  async retainOnly (isKnown: (instanceId: string) => boolean): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const id = NAME.exec(name)?.[1]
      if (id !== undefined && !isKnown(id)) await rm(join(this.#folder, name), { force: true })
    }
  }

  /** The newest ones, oldest first. */
  async read (instanceId: string, limit: number): Promise<RequestEntry[]> {
    const lines: string[] = []
    for (const name of [`${instanceId}.jsonl`, `${instanceId}.jsonl.1`]) {
      if (lines.length < limit) lines.unshift(...await tailOf(join(this.#folder, name)))
    }
    return lines.flatMap(entryOf).slice(-limit)
  }

  /** The newest request of an ingress to this port of an instance, if it is among the last ones: when it was, and whether the program accepted the connection. */
  async lastTo (instanceId: string, ingressId: string, port: number): Promise<{ readonly time: string, readonly isTaken: boolean } | undefined> {
    const lines = await tailOf(join(this.#folder, `${instanceId}.jsonl`), LAST_BYTES)
    for (const fields of lines.reverse().flatMap(fieldsOf)) {
      if (fields.get('ingress') !== ingressId || !String(fields.get('target')).endsWith(`:${port}`)) continue
      return { time: timeOf(fields), isTaken: !(String(fields.get('status')) === '502' && fields.get('connected') === '-') }
    }
    return undefined
  }

  /** New requests, in blocks, some of which are empty. Ends with the signal, or when `isThere` returns false. */
  async * follow (instanceId: string, isThere: () => boolean, signal: AbortSignal): AsyncGenerator<RequestEntry[], void, void> {
    const path = join(this.#folder, `${instanceId}.jsonl`)
    for await (const lines of followLines({ open: async () => await openFile(path), isThere, signal })) yield lines.flatMap(entryOf)
  }
}

async function sizeOf (path: string): Promise<number> {
  return await withFile(path, async (handle) => (await handle.stat()).size, 0)
}

async function tailOf (path: string, most = MOST_READ): Promise<string[]> {
  return await withFile(path, async (handle) => {
    const { size } = await handle.stat()
    const from = Math.max(0, size - most)
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(size - from), 0, size - from, from)
    const lines = buffer.toString('utf8', 0, bytesRead).split('\n')
    // The last line is empty or incomplete, and so may be the first.
    return lines.slice(from > 0 ? 1 : 0, -1)
  }, [])
}

async function withFile<T> (path: string, read: (handle: FileHandle) => Promise<T>, otherwise: T): Promise<T> {
  const handle = await openFile(path)
  if (handle === undefined) return otherwise
  try {
    return await read(handle)
  } finally {
    await handle.close()
  }
}

/** nginx's user owns the folder, so links are not followed, and only regular files are read. */
async function openFile (path: string): Promise<FileHandle | undefined> {
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    if ((await handle.stat()).isFile()) return handle
    await handle.close()
    return undefined
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ELOOP', 'ENXIO')) return undefined
    throw error
  }
}

/** Parses a complete line of nginx. */
function fieldsOf (line: string): ReadonlyMap<string, unknown>[] {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? [new Map<string, unknown>(Object.entries(value))] : []
  } catch {
    return []
  }
}

function timeOf (fields: ReadonlyMap<string, unknown>): string {
  const seconds = Number(fields.get('ms'))
  return new Date(Number.isFinite(seconds) ? seconds * 1000 : 0).toISOString()
}

function entryOf (line: string): RequestEntry[] {
  return fieldsOf(line).map(entryFrom)
}

function entryFrom (fields: ReadonlyMap<string, unknown>): RequestEntry {
  const text = (name: string): string => String(fields.get(name) ?? '').slice(0, 4096)
  const number = (name: string): number => { const found = Number(text(name)); return Number.isFinite(found) ? found : 0 }
  return {
    time: timeOf(fields),
    client: text('client'), protocol: text('protocol'), tls: text('tls') === 'on', method: text('method'), host: text('host'), path: text('path'), status: number('status'),
    bytes_in: number('bytes_in'), bytes_out: number('bytes_out'), duration_ms: Math.round(number('seconds') * 1000), ingress_id: text('ingress') === '' ? null : text('ingress')
  }
}
