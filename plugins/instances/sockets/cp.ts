// One copy session: a file or folder into the guest or out of it over a WebSocket. README.md describes the messages.
import { once } from 'node:events'
import { basename, normalize } from 'node:path/posix'
import type { WebSocket } from 'ws'
import { InvalidRequest } from '../../../core/errors/common.ts'
import { BerthError } from '../../../core/errors/define.ts'
import type { GuestEntry, GuestLink } from '../../guest/contract.ts'
import { awaitAgent } from '../guest/agent.ts'
import type { Context } from '../context.ts'
import { isLoss, isRefusal } from '../guest/guest-errors.ts'
import type { LiveInstance } from '../model/live-instance.ts'
import { pathInfo } from '../api/path-info.ts'
import { withSignals } from '../../../core/jobs/deadline.ts'
import { pause } from '../../../core/jobs/pause.ts'
import { unlessAborted } from '../../../core/jobs/unless-aborted.ts'
import { MessageStream } from './messages.ts'
import { parseCpRequest, type CpRequest } from './requests.ts'

const FIRST_MESSAGE_MS = 30_000
const AGENT_WAIT_MS = 5000
// The official SDK fails when the socket closes before its own last write to disk has finished, so the client closes first.
const CLIENT_CLOSES_MS = 10_000
// The official SDK takes entries as fast as they come and is done at the last `end`, whether or not its own writes to disk
// are. So a folder is sent no faster than the client handles it, and the last `end` comes when its writes have had time.
const ENTRIES_PER_ROUND_TRIP = 32
const LAST_WRITES_MS = 100
const LAST_WRITES_MS_PER_ENTRY = 1
const MOST_LAST_WRITES_MS = 2000
const OPENING_BRACKETS = new Set([0x7b, 0x5b])

/** Serves one socket to its end. Never rejects. */
export async function serveCp (context: Context, instance: LiveInstance, socket: WebSocket): Promise<void> {
  const messages = new MessageStream(socket)
  try {
    const first = await messages.next(AbortSignal.timeout(FIRST_MESSAGE_MS))
    if (first === undefined) return messages.close(1008, 'no request came')
    const request = parseCpRequest(first.data.toString('utf8'))
    const link = await awaitAgent(instance, AGENT_WAIT_MS, messages.closed)
    context.metrics.cpStarted(request.direction)
    await new Copy(context, messages, link, request).run()
    await pause(CLIENT_CLOSES_MS, messages.closed)
    messages.close(1000)
  } catch (error) {
    const known = error instanceof BerthError || isLoss(error) || isRefusal(error)
    // With its client, what it asked the guest for is given up.
    if (!known && !messages.closed.aborted) context.log.error({ err: error, instance: instance.id }, 'a copy session failed')
    await messages.sendJson({ type: 'error', message: known ? error.message : 'internal error', path: '' })
    messages.close(InvalidRequest.is(error) ? 1008 : 1011)
  }
}

class Copy {
  readonly #context: Context
  readonly #messages: MessageStream
  readonly #link: GuestLink
  readonly #request: CpRequest

  constructor (context: Context, messages: MessageStream, link: GuestLink, request: CpRequest) {
    this.#context = context
    this.#messages = messages
    this.#link = link
    this.#request = request
  }

  async run (): Promise<void> {
    switch (this.#request.direction) {
      case 'to': return await this.#into()
      case 'from': return await this.#outOf()
      case 'stat': return await this.#stat()
    }
  }

  async #into (): Promise<void> {
    const { guest_path: path, is_dir: isDir = false, mode, src_basename: basename, uid, gid } = this.#request
    const upload = this.#link.put({
      path,
      type: isDir ? 'dir' : 'file',
      mode: mode ?? (isDir ? 0o755 : 0o644),
      ...(uid === undefined ? {} : { uid }),
      ...(gid === undefined ? {} : { gid }),
      ...(basename === undefined || basename === '' ? {} : { basename })
    })
    upload.content.on('error', () => {})
    const settled = new AbortController()
    const result = upload.result.finally(() => { settled.abort() })
    result.catch(() => {})
    try {
      const complete = await this.#receive(upload.content, settled.signal)
      // A client that vanished in the middle must not leave a truncated file that looks complete.
      if (!complete && !settled.signal.aborted) return upload.cancel()
      const { bytes } = await unlessAborted(this.#messages.closed, result)
      await this.#messages.sendJson({ type: 'result', success: true, bytes_written: bytes })
    } catch (error) {
      upload.cancel()
      if (!isRefusal(error) && !isLoss(error) && !InvalidRequest.is(error)) throw error
      await this.#messages.sendJson({ type: 'result', success: false, error: error.message })
    }
  }

  /** Passes the content on until `end`. Returns whether the client sent all of it. */
  async #receive (content: NodeJS.WritableStream & { readonly writable: boolean, end (): unknown }, settled: AbortSignal): Promise<boolean> {
    for (;;) {
      const message = await this.#messages.next(settled)
      if (message === undefined) return false
      if (!message.binary) {
        if (typeOf(message.data.toString('utf8')) !== 'end') throw InvalidRequest('only {"type":"end"} is expected after the request, and content in binary messages')
        content.end()
        return true
      }
      this.#context.metrics.cpBytes('to', message.data.length)
      if (!content.writable || content.write(message.data)) continue
      try {
        await withSignals([settled, this.#messages.closed], async (signal) => await once(content, 'drain', { signal }))
      } catch (error) {
        // The guest has given up, or the client has; the result tells which.
        if (content.writable && !settled.aborted && !this.#messages.closed.aborted) throw error
      }
    }
  }

  async #outOf (): Promise<void> {
    const { guest_path: path, follow_links: follow = false } = this.#request
    let sent = 0
    try {
      for await (const entry of this.#link.get(path, { follow, signal: this.#messages.closed })) {
        if (this.#messages.closed.aborted) return
        if (entry.error !== undefined || entry.type === undefined) {
          return await this.#messages.sendJson({ type: 'error', message: entry.error ?? 'cannot be read', path: entry.path === '' ? path : entry.path })
        }
        // Sockets, pipes and devices have no form in this protocol.
        if (entry.type === 'other') continue
        // Whether an entry is the last one is known only when the next one comes.
        if (sent > 0) await this.#messages.sendJson({ type: 'end', final: false })
        await this.#sendEntry(entry)
        if (++sent % ENTRIES_PER_ROUND_TRIP === 0) await this.#messages.roundTrip()
      }
      if (sent > 1) await this.#letClientWrite(sent)
      if (sent > 0) await this.#messages.sendJson({ type: 'end', final: true })
      else await this.#messages.sendJson({ type: 'error', message: 'neither a file, a folder nor a symbolic link', path })
    } catch (error) {
      if (!isRefusal(error) && !isLoss(error)) throw error
      await this.#messages.sendJson({ type: 'error', message: error.message, path })
    }
  }

  async #letClientWrite (entries: number): Promise<void> {
    await this.#messages.roundTrip()
    await pause(Math.min(LAST_WRITES_MS + entries * LAST_WRITES_MS_PER_ENTRY, MOST_LAST_WRITES_MS), this.#messages.closed)
    await this.#messages.roundTrip()
  }

  async #sendEntry (entry: GuestEntry): Promise<void> {
    const isSymlink = entry.type === 'symlink'
    await this.#messages.sendJson({
      type: 'header',
      path: pathFor(this.#request.guest_path, entry.path),
      mode: entry.mode ?? 0,
      is_dir: entry.type === 'dir',
      is_symlink: isSymlink,
      ...(isSymlink ? { link_target: entry.linkTarget ?? '' } : {}),
      size: entry.sizeBytes ?? 0,
      mtime: Math.trunc(entry.mtime ?? 0),
      uid: entry.uid ?? 0,
      gid: entry.gid ?? 0
    })
    if (entry.content === undefined) return
    for await (const chunk of entry.content) {
      if (this.#messages.closed.aborted) return
      this.#context.metrics.cpBytes('from', chunk.length)
      for (const frame of contentFrames(chunk)) await this.#messages.sendBinary(frame)
    }
  }

  async #stat (): Promise<void> {
    const { guest_path: path, follow_links: follow = false } = this.#request
    await this.#messages.sendJson({ type: 'stat', is_dir: false, is_file: false, mode: 0, size: 0, ...await pathInfo(this.#link, path, { follow, signal: this.#messages.closed }) })
  }
}

/**
 * What an entry is called: the last part of the requested path, and the entry's path below it. Clients write it below the folder that their user names; the Python SDK
 * refuses one that would be that folder itself. Only of the root, which has no name, it is a dot.
 */
function pathFor (requested: string, below: string): string {
  const base = basename(normalize(requested))
  if (base === '' || base === '.' || base === '..') return below === '' ? '.' : below
  return below === '' ? base : `${base}/${below}`
}

/**
 * The frames of one piece of content. The official SDK takes a binary frame that parses as JSON for a message of the
 * protocol, so no frame may both begin with a bracket and go on to something else.
 */
export function contentFrames (chunk: Buffer): Buffer[] {
  let brackets = 0
  while (brackets < chunk.length && OPENING_BRACKETS.has(chunk[brackets] ?? 0)) brackets++
  return [chunk.subarray(0, brackets), chunk.subarray(brackets)].filter((frame) => frame.length > 0)
}

function typeOf (text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && 'type' in value ? value.type : undefined
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}
