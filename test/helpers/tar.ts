// Writes tar archives (ustar) for test images, entry by entry and byte by byte as a test wants them.

export interface TarEntry {
  readonly path: string
  readonly type?: 'file' | 'dir' | 'symlink' | 'hardlink'
  readonly content?: Buffer | string
  readonly target?: string
  readonly mode?: number
  readonly uid?: number
  readonly gid?: number
}

const blockSize = 512
const typeFlags = { file: '0', hardlink: '1', symlink: '2', dir: '5' } as const

/** An archive of the entries, in their order. */
export function tar (entries: readonly TarEntry[]): Buffer {
  const parts = entries.flatMap((entry) => {
    const content = Buffer.from(entry.content ?? '')
    return [header(entry, content.length), content, Buffer.alloc((blockSize - content.length % blockSize) % blockSize)]
  })
  return Buffer.concat([...parts, Buffer.alloc(2 * blockSize)])
}

function header (entry: TarEntry, size: number): Buffer {
  const type = entry.type ?? 'file'
  if (Buffer.byteLength(entry.path) > 100 || Buffer.byteLength(entry.target ?? '') > 100) throw new Error(`too long for a ustar header: ${entry.path}`)
  const block = Buffer.alloc(blockSize)
  const octal = (value: number, at: number, length: number): void => { block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, at, 'latin1') }
  block.write(entry.path, 0)
  octal(entry.mode ?? (type === 'dir' ? 0o755 : 0o644), 100, 8)
  octal(entry.uid ?? 0, 108, 8)
  octal(entry.gid ?? 0, 116, 8)
  octal(size, 124, 12)
  octal(1_700_000_000, 136, 12)
  block.write(typeFlags[type], 156)
  block.write(entry.target ?? '', 157)
  block.write('ustar\x0000', 257, 'latin1')
  // The checksum is that of the header with spaces in its own place.
  block.write(' '.repeat(8), 148)
  block.write(`${block.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, '0')}\0 `, 148, 'latin1')
  return block
}
