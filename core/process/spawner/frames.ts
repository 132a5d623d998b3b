// What the server and berth-spawner say to each other: frame.h says what each is, and is the other end.
import { endianness } from 'node:os'

const START = 1
const KILL = 2
export const STDOUT = 3
export const STDERR = 4
export const STARTED = 5
export const ENDED = 6
export const FAILED = 7

const HEADER_BYTES = 12
const isLittle = endianness() === 'LE'

export interface Frame {
  readonly command: number
  readonly type: number
  readonly payload: Buffer
}

export interface Start {
  readonly file: string
  readonly args: readonly string[]
  /** absolute */
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** absent: the command reads from /dev/null */
  readonly input?: Buffer
  /** of a process in the background: the file that its output is appended to, which exists; a link is not followed */
  readonly log?: string
  /** at most 8 files that it finds open for reading, as descriptor 3 and on */
  readonly files?: readonly string[]
}

/** @throws TypeError for a text with a NUL, which no program can be given */
export function startFrame (command: number, { file, args, cwd, env, input, log, files = [] }: Start): Buffer {
  const words = [cwd, file, file, ...args]
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const logs = log === undefined ? [] : [log]
  const texts = [...words, ...variables, ...files, ...logs]
  if (texts.some((text) => text.includes('\0'))) throw new TypeError(`the command ${file} is given a text with a NUL`)
  const bytes = Buffer.from(texts.map((text) => `${text}\0`).join(''))
  const start = numbers(bytes.length, words.length, variables.length, files.length, logs.length, input === undefined ? 0 : 1)
  return frame(command, START, [start, bytes, ...input === undefined ? [] : [input]])
}

export function killFrame (command: number): Buffer {
  return frame(command, KILL, [])
}

/** The signed number that is all of a payload. */
export function numberIn (payload: Buffer): number {
  return isLittle ? payload.readInt32LE() : payload.readInt32BE()
}

/** Makes frames of what arrives piece by piece. */
export function frameReader (take: (frame: Frame) => void): (piece: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (piece) => {
    let bytes = rest.length === 0 ? piece : Buffer.concat([rest, piece])
    while (bytes.length >= HEADER_BYTES) {
      const [command, type, length] = [0, 4, 8].map((at) => isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)) as [number, number, number]
      if (bytes.length < HEADER_BYTES + length) break
      take({ command, type, payload: bytes.subarray(HEADER_BYTES, HEADER_BYTES + length) })
      bytes = bytes.subarray(HEADER_BYTES + length)
    }
    rest = bytes
  }
}

function frame (command: number, type: number, parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  return Buffer.concat([numbers(command, type, length), ...parts])
}

function numbers (...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4)
  for (const [index, value] of values.entries()) {
    if (isLittle) bytes.writeUInt32LE(value, index * 4)
    else bytes.writeUInt32BE(value, index * 4)
  }
  return bytes
}
