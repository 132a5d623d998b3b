// Runs a command in a VM over the WebSocket of the API: plugins/instances/README.md, "exec", has the messages.
import type { Readable } from 'node:stream'
import type WebSocket from 'ws'
import type { Api } from '../api/client.ts'
import { path } from '../api/path.ts'
import { parseJson } from '../api/json.ts'
import { onMessage, openSocket } from '../api/socket.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'

export interface ExecOptions {
  readonly instance: string
  readonly command: readonly string[]
  readonly tty: boolean
  readonly interactive: boolean
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
  readonly user?: string | undefined
  readonly waitSeconds?: number | undefined
}

/** The streams of the command on this side. */
export interface ExecStreams {
  readonly input: Readable
  readonly output: NodeJS.WriteStream
  readonly error: NodeJS.WriteStream
}

const STDOUT = 1
const MAX_CHUNK = 64 * 1024
/** how many bytes may wait in this process until the server reads them */
const MAX_WAITING = 1024 * 1024
/** The longest wait for the guest, given by the API. */
const MOST_AGENT_SECONDS = 3600

/** Runs it to its end and returns its exit code. When `ended` aborts, the command is killed, since its client is gone. */
export async function execute (api: Api, options: ExecOptions, streams: ExecStreams, ended: AbortSignal): Promise<number> {
  const socket = await openSocket(api, path`/instances/${options.instance}/exec`, ended)
  const code = outcome(socket, options, streams)
  socket.resume()
  socket.send(JSON.stringify({
    command: options.command, tty: options.tty, env: options.env, cwd: options.cwd, user: options.user, wait_for_agent: options.waitSeconds === undefined ? undefined : Math.min(options.waitSeconds, MOST_AGENT_SECONDS),
    control: true, streams: !options.tty, stdin: options.interactive, ...options.tty ? sizeOf(streams.output) : {}
  }))
  const resized = (): void => {
    const size = sizeOf(streams.output)
    if (size !== undefined) socket.send(JSON.stringify({ resize: size }))
  }
  const stopInput = options.interactive ? sendInput(socket, streams.input) : () => undefined
  if (options.tty) streams.output.on('resize', resized)
  try {
    return await code
  } finally {
    streams.output.off('resize', resized)
    stopInput()
    socket.terminate()
  }
}

/** Undefined of a terminal that does not know it, and says 0 by 0, as a serial line does. */
function sizeOf ({ rows, columns }: NodeJS.WriteStream): { readonly rows: number, readonly cols: number } | undefined {
  return rows > 0 && columns > 0 ? { rows, cols: columns } : undefined
}

async function outcome (socket: WebSocket, options: ExecOptions, streams: ExecStreams): Promise<number> {
  return await new Promise((resolve, reject) => {
    onMessage(socket, reject, (bytes, isBinary) => {
      if (isBinary) {
        show(socket, options.tty ? streams.output : bytes[0] === STDOUT ? streams.output : streams.error, options.tty ? bytes : bytes.subarray(1))
        return
      }
      const message = parseJson<{ readonly exitCode?: number, readonly error?: string }>(bytes.toString())
      if (message.exitCode !== undefined) resolve(message.exitCode)
      else if (message.error !== undefined) reject(new Failure(message.error, { exitCode: EXIT.berthFailed }))
    })
    socket.once('close', () => reject(new Failure(`the connection to ${options.instance} was lost; the command there has been ended`, { exitCode: EXIT.berthFailed })))
  })
}

/** A slow reader slows the command down, through the connection. */
function show (socket: WebSocket, stream: NodeJS.WriteStream, bytes: Buffer): void {
  if (stream.write(bytes)) return
  socket.pause()
  stream.once('drain', () => socket.resume())
}

function sendInput (socket: WebSocket, input: Readable): () => void {
  const take = (chunk: Buffer): void => {
    for (let from = 0; from < chunk.length; from += MAX_CHUNK) {
      socket.send(chunk.subarray(from, from + MAX_CHUNK), { binary: true }, () => { if (socket.bufferedAmount < MAX_WAITING) input.resume() })
    }
    if (socket.bufferedAmount >= MAX_WAITING) input.pause()
  }
  const end = (): void => { if (socket.readyState === socket.OPEN) socket.send(JSON.stringify({ stdin: 'close' })) }
  input.on('data', take)
  input.once('end', end)
  return () => {
    input.off('data', take)
    input.off('end', end)
    input.pause()
  }
}
