// Reads an instance's file system over the API: plugins/instances/README.md, "cp".
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import type WebSocket from 'ws'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { parseJson } from '../api/json.ts'
import { onMessage, openSocket } from '../api/socket.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Entry } from './entry.ts'

interface Header { readonly type: 'header', readonly path: string, readonly mode: number, readonly is_dir: boolean, readonly is_symlink?: boolean, readonly link_target?: string, readonly size: number, readonly mtime: number }
type Message = Header | { readonly type: 'end', readonly final: boolean } | { readonly type: 'error', readonly message: string }

/** The entries below `from`; their paths are relative to it. */
export async function * guestEntries (api: Api, instance: string, from: string, followLinks: boolean, signal: AbortSignal): AsyncGenerator<Entry> {
  const socket = await openSocket(api, path`/instances/${instance}/cp`, signal)
  const messages = messagesOf(socket, instance)
  socket.send(JSON.stringify({ direction: 'from', guest_path: from, follow_links: followLinks }))
  try {
    for await (const message of messages) {
      if (Buffer.isBuffer(message)) throw unexpected(instance)
      if (message.type === 'error') throw new Failure(`${instance}: ${message.message}`)
      if (message.type === 'end') {
        if (message.final) return
        continue
      }
      const content = new PassThrough()
      // The connection may be lost before the first read: the reader then gets the error.
      content.on('error', () => undefined)
      const filled = fill(content, messages, instance)
      filled.catch((error: unknown) => content.destroy(error instanceof Error ? error : new Error(String(error))))
      const below = message.path.split('/').slice(1).join('/')
      const kind = message.is_dir ? 'folder' : message.is_symlink === true ? 'link' : 'file'
      yield { path: below, kind, mode: message.mode & 0o7777, size: message.size, mtime: message.mtime, ...message.link_target === undefined ? {} : { target: message.link_target }, content }
      content.resume()
      if (await filled) return
    }
  } finally {
    socket.terminate()
  }
}

/** Whether it was the last entry. */
async function fill (content: PassThrough, messages: AsyncIterator<Buffer | Message>, instance: string): Promise<boolean> {
  while (true) {
    const { value, done } = await messages.next()
    if (done === true) throw unexpected(instance)
    if (Buffer.isBuffer(value)) {
      if (!content.write(value)) await once(content, 'drain')
    } else if (value.type === 'end') {
      content.end()
      return value.final
    } else throw value.type === 'error' ? new Failure(`${instance}: ${value.message}`) : unexpected(instance)
  }
}

/** Messages one after the other; the connection is paused while no caller asks for the next. */
async function * messagesOf (socket: WebSocket, instance: string): AsyncGenerator<Buffer | Message> {
  const waiting: (Buffer | Message)[] = []
  let wake = (): void => undefined
  let isClosed = false
  let failure: unknown
  const fail = (error: unknown): void => {
    failure ??= error
    wake()
  }
  onMessage(socket, fail, (bytes, isBinary) => {
    waiting.push(isBinary ? bytes : parseJson<Message>(bytes.toString()))
    if (waiting.length > MAX_WAITING) socket.pause()
    wake()
  })
  socket.once('close', () => {
    isClosed = true
    wake()
  })
  socket.resume()
  while (true) {
    const next = waiting.shift()
    if (next !== undefined) {
      if (waiting.length === 0 && socket.isPaused) socket.resume()
      yield next
    } else if (failure !== undefined) throw failure
    else if (isClosed) throw unexpected(instance)
    else await new Promise<void>((resolve) => { wake = resolve })
  }
}

const MAX_WAITING = 16

function unexpected (instance: string): Failure {
  return new Failure(`the connection to ${instance} was lost in the middle of the copy`, { exitCode: EXIT.unreachable })
}
