// Writes the "newc" cpio archive that the kernel unpacks as its first root. The same entries give the same bytes.

export type CpioEntry =
  { readonly path: string, readonly kind: 'dir', readonly mode: number } |
  { readonly path: string, readonly kind: 'file', readonly mode: number, readonly content: Buffer } |
  { readonly path: string, readonly kind: 'device', readonly mode: number, readonly major: number, readonly minor: number }

const TYPE_BITS = { dir: 0o040000, file: 0o100000, device: 0o020000 } as const
const ALIGNMENT = 4
const END = 'TRAILER!!!'
const EMPTY = Buffer.alloc(0)

/** Paths are relative, and folders come before what is in them. */
export function cpioArchive (entries: readonly CpioEntry[]): Buffer {
  const parts: Buffer[] = []
  // Inode numbers only distinguish hard links, and there are none here.
  entries.forEach((entry, index) => { parts.push(...record(entry, index + 1)) })
  parts.push(...record({ path: END, kind: 'file', mode: 0, content: EMPTY }, 0))
  return Buffer.concat(parts)
}

function record (entry: CpioEntry, inode: number): Buffer[] {
  const name = Buffer.from(`${entry.path}\0`)
  const content = entry.kind === 'file' ? entry.content : EMPTY
  const device = entry.kind === 'device' ? [entry.major, entry.minor] : [0, 0]
  const mode = entry.path === END ? 0 : TYPE_BITS[entry.kind] | entry.mode
  // inode, mode, uid, gid, links, mtime, size, device of the file (2), device that it is (2), name size, checksum
  const numbers = [inode, mode, 0, 0, entry.kind === 'dir' ? 2 : 1, 0, content.length, 0, 0, ...device, name.length, 0]
  const header = Buffer.from('070701' + numbers.map((number) => number.toString(16).padStart(8, '0')).join(''))
  return [header, name, padding(header.length + name.length), content, padding(content.length)]
}

function padding (length: number): Buffer {
  return Buffer.alloc((ALIGNMENT - length % ALIGNMENT) % ALIGNMENT)
}
