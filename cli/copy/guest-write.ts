// Writes entries into an instance's file system, with one connection for each, as the API requires.
import type WebSocket from 'ws'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { parseJson } from '../api/json.ts'
import { onMessage, openSocket } from '../api/socket.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Entry } from './entry.ts'
import { goesUp } from './shortest.ts'

const MAX_WAITING = 1024 * 1024

/** @param options.skipped told of each entry that is left out, as the API has no message for what is neither file nor folder, and as it leads out of the target */
export async function writeToGuest (api: Api, instance: string, target: string, entries: AsyncIterable<Entry>, options: { readonly signal: AbortSignal, readonly skipped: (entry: Entry) => void }): Promise<void> {
  for await (const entry of entries) {
    if ((entry.kind !== 'file' && entry.kind !== 'folder') || goesUp(entry.path)) options.skipped(entry)
    else await writeEntry(api, instance, entry.path === '' ? target : `${target.replace(/\/$/, '')}/${entry.path}`, entry, options.signal)
  }
}

async function writeEntry (api: Api, instance: string, target: string, { kind, mode, content }: Entry, signal: AbortSignal): Promise<void> {
  const socket = await openSocket(api, path`/instances/${instance}/cp`, signal)
  const result = resultOf(socket, instance)
  result.catch(() => undefined)
  socket.resume()
  try {
    socket.send(JSON.stringify({ direction: 'to', guest_path: target, is_dir: kind === 'folder', mode }))
    if (content !== undefined) {
      for await (const chunk of content as AsyncIterable<Buffer>) {
        await sent(socket, chunk)
        if (socket.readyState !== socket.OPEN) break
      }
    }
    if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ type: 'end' }))
    await result
  } finally {
    socket.terminate()
  }
}

async function sent (socket: WebSocket, chunk: Buffer): Promise<void> {
  await new Promise<void>((resolve) => {
    socket.send(chunk, { binary: true }, () => resolve())
    if (socket.bufferedAmount < MAX_WAITING) resolve()
  })
}

async function resultOf (socket: WebSocket, instance: string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    onMessage(socket, reject, (bytes) => {
      const message = parseJson<{ type: string, success?: boolean, error?: string, message?: string }>(bytes.toString())
      if (message.type === 'result' && message.success === true) resolve()
      else reject(new Failure(`${instance}: ${message.error ?? message.message ?? 'the copy failed'}`))
    })
    socket.once('close', () => reject(new Failure(`the connection to ${instance} was lost in the middle of the copy`, { exitCode: EXIT.unreachable })))
  })
}
