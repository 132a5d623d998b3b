// Copies files to the guest and from it, over the API's WebSockets (plugins/instances/README.md, cp and exec).
import { path } from '../../api/call.ts'
import { openSocket } from '../../api/socket.ts'

const MOST_BYTES = 512 * 1024 * 1024
const CHUNK = 256 * 1024
const MOST_WAITING = 4 * 1024 * 1024
/** of what `ls` prints, which is whatever the guest wants */
const MOST_LISTED_BYTES = 4 * 1024 * 1024
const MOST_NAMES = 20_000

/** Names in a folder. Rejects when the guest has no `ls`, or too many names. */
export async function listFolder (id: string, folder: string): Promise<ReadonlyArray<{ readonly name: string, readonly isFolder: boolean }>> {
  const socket = await openSocket(path`/instances/${id}/exec`)
  socket.send(JSON.stringify({ command: ['ls', '-1Ap', '--', folder], control: true, streams: true, stdin: false, timeout: 20 }))
  const output: Uint8Array[] = []
  const faults: Uint8Array[] = []
  let bytes = 0
  const code = await outcome(socket, (chunk) => {
    bytes += chunk.length
    if (bytes > MOST_LISTED_BYTES) throw tooMany()
    ;(chunk[0] === 1 ? output : faults).push(chunk.subarray(1))
  }).finally(() => { socket.close() })
  if (code !== 0) throw new Error((await textOf(faults)).trim() || (await textOf(output)).trim() || 'The image has no program ls, which tells what is in a folder.')
  const names = (await textOf(output)).split('\n').filter((line) => line !== '')
  if (names.length > MOST_NAMES) throw tooMany()
  return names.map((line) => ({ name: line.replace(/\/$/, ''), isFolder: line.endsWith('/') }))
}

function tooMany (): Error {
  return new Error(`The folder has too many names: at most ${MOST_NAMES.toLocaleString()}, of ${MOST_LISTED_BYTES / 1024 / 1024} MiB together, are shown.`)
}

export async function fetchFile (id: string, place: string): Promise<void> {
  const socket = await openSocket(path`/instances/${id}/cp`)
  const parts: Uint8Array[] = []
  let size = 0
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('message', ({ data }) => {
      if (typeof data !== 'string') {
        const part = new Uint8Array(data as ArrayBuffer)
        size += part.length
        if (size > MOST_BYTES) { reject(new Error('The file is larger than 512 MiB: berth cp copies it.')); socket.close(); return }
        parts.push(part)
        return
      }
      const message = JSON.parse(data) as { readonly type: string, readonly message?: string, readonly final?: boolean }
      if (message.type === 'error') reject(new Error(message.message))
      if (message.type === 'end' && message.final === true) resolve()
    })
    socket.addEventListener('close', () => { reject(new Error('The connection was lost.')) })
    socket.send(JSON.stringify({ direction: 'from', guest_path: place }))
  }).finally(() => { socket.close() })
  const link = document.createElement('a')
  link.href = URL.createObjectURL(new Blob(parts as BlobPart[], { type: 'application/octet-stream' }))
  link.download = place.split('/').at(-1) ?? 'file'
  link.click()
  setTimeout(() => { URL.revokeObjectURL(link.href) }, 60_000)
}

export async function putFile (id: string, place: string, file: File): Promise<void> {
  const socket = await openSocket(path`/instances/${id}/cp`)
  const answered = new Promise<void>((resolve, reject) => {
    socket.addEventListener('message', ({ data }) => {
      const message = JSON.parse(String(data)) as { readonly type: string, readonly success?: boolean, readonly error?: string, readonly message?: string }
      if (message.type === 'result' && message.success === true) resolve()
      else reject(new Error(message.error ?? message.message ?? 'It was refused.'))
    })
    socket.addEventListener('close', () => { reject(new Error('The connection was lost.')) })
  })
  answered.catch(() => undefined)
  socket.send(JSON.stringify({ direction: 'to', guest_path: place, is_dir: false, mode: 0o644 }))
  for (let at = 0; at < file.size && socket.readyState === WebSocket.OPEN; at += CHUNK) {
    socket.send(await file.slice(at, at + CHUNK).arrayBuffer())
    while (socket.bufferedAmount > MOST_WAITING && socket.readyState === WebSocket.OPEN) await new Promise((resolve) => { setTimeout(resolve, 20) })
  }
  if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ type: 'end' }))
  await answered.finally(() => { socket.close() })
}

/** The code with which the program ends. Rejects also with what `take` throws. */
async function outcome (socket: WebSocket, take: (chunk: Uint8Array) => void): Promise<number> {
  return await new Promise((resolve, reject) => {
    socket.addEventListener('message', ({ data }) => {
      if (typeof data !== 'string') {
        try { take(new Uint8Array(data as ArrayBuffer)) } catch (error) { reject(error) }
        return
      }
      const { exitCode, error } = JSON.parse(data) as { readonly exitCode?: number, readonly error?: string }
      if (exitCode === undefined) reject(new Error(error))
      else resolve(exitCode)
    })
    socket.addEventListener('close', () => { reject(new Error('The connection was lost.')) })
  })
}

async function textOf (parts: readonly Uint8Array[]): Promise<string> {
  return await new Blob([...parts] as BlobPart[]).text()
}
