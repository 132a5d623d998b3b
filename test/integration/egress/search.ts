// Looks for a word in files, in the memory of processes and in answers, as raw bytes and in the forms that programs give it.
import { spawn } from 'node:child_process'
import { createReadStream, type Stats } from 'node:fs'
import { open, readdir, readFile, stat, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { hasCode } from '../../../core/errors/system-code.ts'

export interface Word {
  readonly name: string
  readonly bytes: Buffer
}

const CHUNK_BYTES = 8 * 2 ** 20

/** How a word may look: as it is, in base64 at each of the three places that it can begin in a group, in hex, and with two bytes to a character. */
export function formsOf (word: string): Word[] {
  const base64 = [0, 1, 2].map((offset) => {
    const text = Buffer.concat([Buffer.alloc(offset), Buffer.from(word)]).toString('base64').replaceAll('=', '')
    // The characters at both ends depend on the neighbours too.
    return { name: `base64 at ${offset}`, bytes: Buffer.from(text.slice(offset === 0 ? 0 : offset + 1, -1)) }
  })
  const hex = Buffer.from(word).toString('hex')
  return [
    { name: 'as it is', bytes: Buffer.from(word) }, ...base64,
    { name: 'hex', bytes: Buffer.from(hex) }, { name: 'utf-16', bytes: Buffer.from(word, 'utf16le') }
  ]
}

/** Looks for several words at once. All of them must have 8 bytes or more. */
class Finder {
  readonly overlap: number
  readonly #words: readonly Word[]
  /** every `stride`-th place is looked at: wherever a word lies, one of them is in it, with 4 bytes of it there */
  readonly #stride: number
  /** the 4 bytes at each of the places of a word that may be hit: as numbers, and before that as one bit of their sum */
  readonly #parts = new Set<number>()
  readonly #maybe = new Uint8Array(2 ** 16)

  constructor (words: readonly Word[]) {
    this.#words = words
    this.#stride = Math.min(...words.map(({ bytes }) => bytes.length)) - 3
    this.overlap = Math.max(...words.map(({ bytes }) => bytes.length)) - 1
    for (const { bytes } of words) {
      for (let at = 0; at < this.#stride; at++) {
        const part = bytes.readUInt32LE(at)
        this.#parts.add(part)
        this.#maybe[(part ^ part >>> 16) & 0xffff] = 1
      }
    }
  }

  /** The names of the words that are in there. */
  find (bytes: Buffer, found: Set<string>): void {
    const maybe = this.#maybe
    for (let at = 0; at <= bytes.length - 4; at += this.#stride) {
      const low = (bytes[at] ?? 0) | (bytes[at + 1] ?? 0) << 8
      const high = (bytes[at + 2] ?? 0) | (bytes[at + 3] ?? 0) << 8
      if (maybe[low ^ high] === 0 || !this.#parts.has((low | high << 16) >>> 0)) continue
      const around = bytes.subarray(Math.max(0, at - this.#stride), at + this.overlap + 1)
      for (const { name, bytes: word } of this.#words) if (around.includes(word)) found.add(name)
    }
  }
}

/** Which of the words a text of bytes holds, each named once. */
export function findInBytes (bytes: Buffer, words: readonly Word[]): string[] {
  const found = new Set<string>()
  new Finder(words).find(bytes, found)
  return [...found]
}

async function findInPieces (pieces: AsyncIterable<Buffer>, finder: Finder): Promise<string[]> {
  const { overlap } = finder
  const found = new Set<string>()
  let before = Buffer.alloc(0)
  for await (const piece of pieces) {
    finder.find(piece, found)
    // What lies across two pieces is looked for where they meet.
    finder.find(Buffer.concat([before, piece.subarray(0, overlap)]), found)
    before = Buffer.from(Buffer.concat([before, piece.subarray(-overlap)]).subarray(-overlap))
  }
  return [...found]
}

/** Tools that expand a file, by its first bytes. */
const COMPRESSIONS: ReadonlyArray<readonly [magic: string, program: string]> = [['28b52ffd', 'zstd'], ['04224d18', 'lz4'], ['1f8b08', 'gzip']]

/** `path: form` for each file below a folder that holds a word, also inside of compressed files; and how many bytes were looked at. */
export async function findInFolder (folder: string, words: readonly Word[], skip: (path: string) => boolean = () => false): Promise<{ readonly found: string[], readonly files: number, readonly bytes: number }> {
  const found: string[] = []
  let files = 0
  let bytes = 0
  const finder = new Finder(words)
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (!entry.isFile() || skip(path)) continue
    try {
      const facts = await stat(path)
      bytes += facts.size
      for (const name of await findInPieces(contentOf(path, facts), finder)) found.push(`${path}: ${name}`)
      for (const name of await findInCompressed(path, finder)) found.push(`${path}: compressed, ${name}`)
      files++
    } catch (error) {
      // A server goes on working meanwhile: files come and go.
      if (!hasCode(error, 'ENOENT')) throw error
    }
  }
  return { found, files, bytes }
}

/** What is written of a file. A disk may be a thousandth of its size, and tar leaves out the rest. */
function contentOf (path: string, { size, blocks }: Pick<Stats, 'size' | 'blocks'>): Readable {
  if (blocks * 512 > size / 2) return createReadStream(path, { highWaterMark: CHUNK_BYTES })
  return spawn('tar', ['--create', '--sparse', '--absolute-names', '--file=-', path], { stdio: ['ignore', 'pipe', 'ignore'] }).stdout
}

async function findInCompressed (path: string, finder: Finder): Promise<string[]> {
  const file = await open(path)
  const head = Buffer.alloc(4)
  await file.read(head, 0, 4, 0)
  await file.close()
  const program = COMPRESSIONS.find(([magic]) => head.toString('hex').startsWith(magic))?.[1]
  if (program === undefined) return []
  const child = spawn(program, ['-d', '-c', path], { stdio: ['ignore', 'pipe', 'ignore'] })
  return await findInPieces(child.stdout as Readable, finder)
}

/** The forms of words that the readable memory of a process holds, with the map each was seen in; and how many bytes that was. */
export async function findInMemory (pid: number, words: readonly Word[]): Promise<{ readonly found: string[], readonly bytes: number }> {
  const maps = (await readFile(`/proc/${pid}/maps`, 'utf8')).split('\n').flatMap((line) => {
    const match = /^([0-9a-f]+)-([0-9a-f]+) r\S+ \S+ \S+ \S+\s*(.*)$/.exec(line)
    return match === null ? [] : [{ start: Number.parseInt(match[1] ?? '', 16), end: Number.parseInt(match[2] ?? '', 16), name: match[3] ?? '' }]
  })
  const memory = await open(`/proc/${pid}/mem`)
  const finder = new Finder(words)
  const found = new Set<string>()
  let bytes = 0
  try {
    // The last one is of the kernel, and not to be read this way.
    for (const { start, end, name } of maps.filter((map) => !map.name.startsWith('[v'))) {
      bytes += end - start
      for (const form of await findInPieces(readMap(memory, start, end), finder)) found.add(`${name === '' ? 'anonymous' : name}: ${form}`)
    }
  } finally {
    await memory.close()
  }
  return { found: [...found], bytes }
}

async function * readMap (memory: FileHandle, start: number, end: number): AsyncGenerator<Buffer> {
  const buffer = Buffer.alloc(Math.min(CHUNK_BYTES, end - start))
  for (let at = start; at < end;) {
    try {
      const { bytesRead } = await memory.read(buffer, 0, Math.min(buffer.length, end - at), at)
      if (bytesRead === 0) return
      yield buffer.subarray(0, bytesRead)
      at += bytesRead
    } catch (error) {
      // Beyond the end of the file behind a map, or of a device: there is nothing to read.
      if (!hasCode(error, 'EIO', 'EFAULT', 'ESRCH')) throw error
      at += 4096
    }
  }
}

/** Command lines and environments of all processes of this machine that hold a word. */
export async function findInProcesses (words: readonly Word[]): Promise<string[]> {
  const found: string[] = []
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    for (const file of ['cmdline', 'environ']) {
      try {
        for (const name of findInBytes(await readFile(`/proc/${pid}/${file}`), words)) found.push(`/proc/${pid}/${file}: ${name}`)
      } catch (error) {
        if (!hasCode(error, 'ENOENT', 'ESRCH', 'EACCES')) throw error
      }
    }
  }
  return found
}
