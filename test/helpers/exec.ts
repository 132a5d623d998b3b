// A client of the exec WebSocket that keeps stdout and stderr apart and can close standard input.
import { once } from 'node:events'
import { WebSocket } from 'ws'
import type { TestServer } from './server.ts'

export interface ExecRequest {
  readonly command: readonly string[]
  readonly tty?: boolean
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly user?: string
  readonly timeout?: number
  readonly rows?: number
  readonly cols?: number
}

export interface Command {
  readonly socket: WebSocket
  write (data: string | Buffer): void
  closeStdin (): void
  control (message: unknown): void
  /** called with each piece of output; 1 is stdout, 2 is stderr */
  onOutput (listener: (stream: number, data: Buffer) => void): void
  /** Resolves with the last message, `exitCode` or `error`. */
  readonly result: Promise<{ exitCode?: number, error?: string }>
}

/** Starts a command in an instance. */
export async function startCommand (server: Pick<TestServer, 'url' | 'key'>, id: string, request: ExecRequest): Promise<Command> {
  const socket = new WebSocket(`${server.url.replace(/^http/, 'ws')}/instances/${id}/exec`, { headers: { authorization: `Bearer ${server.key}` } })
  const listeners: ((stream: number, data: Buffer) => void)[] = []
  const result = new Promise<{ exitCode?: number, error?: string }>((resolve, reject) => {
    socket.on('message', (data: Buffer, isBinary: boolean) => {
      if (!isBinary) return resolve(JSON.parse(data.toString()))
      for (const listener of listeners) listener(data[0] ?? 0, data.subarray(1))
    })
    socket.on('error', reject)
    socket.on('close', code => reject(new Error(`the socket closed with ${code} before a result came`)))
  })
  result.catch(() => undefined)
  await Promise.race([once(socket, 'open'), result])
  socket.send(JSON.stringify({ ...request, streams: true, control: true }))
  const control = (message: unknown): void => socket.send(JSON.stringify(message))
  return {
    socket,
    result,
    control,
    write: data => socket.send(Buffer.from(data)),
    closeStdin: () => control({ stdin: 'close' }),
    onOutput: (listener) => { listeners.push(listener) }
  }
}

/** Runs a command to its end, with `input` on its standard input. */
export async function runCommand (server: Pick<TestServer, 'url' | 'key'>, id: string, request: ExecRequest, input: string | Buffer = ''): Promise<{ stdout: string, stderr: string, exitCode: number | undefined, error: string | undefined }> {
  const command = await startCommand(server, id, request)
  const parts: Record<number, Buffer[]> = { 1: [], 2: [] }
  command.onOutput((stream, data) => { parts[stream]?.push(data) })
  if (input.length > 0) command.write(input)
  command.closeStdin()
  const { exitCode, error } = await command.result
  return { stdout: Buffer.concat(parts[1] ?? []).toString(), stderr: Buffer.concat(parts[2] ?? []).toString(), exitCode, error }
}
