// Reads two facts of ELF files: whether a file is a kernel for this machine, and one section of a kernel module.

const MAGIC = Buffer.from('\x7fELF', 'latin1')
const CLASS_64 = 2
const LITTLE_ENDIAN = 1
const MACHINE_X86_64 = 62
const TYPE_EXECUTABLE = 2
const HEADER_BYTES = 64
const SECTION_HEADER_BYTES = 64

export function isElf (head: Buffer): boolean {
  return head.subarray(0, MAGIC.length).equals(MAGIC)
}

/** Why these first bytes are not those of an x86-64 kernel; `undefined` for one. */
export function kernelFault (head: Buffer): string | undefined {
  if (head.length < HEADER_BYTES || !isElf(head)) return 'it is no ELF file'
  if (head[4] !== CLASS_64 || head[5] !== LITTLE_ENDIAN || head.readUInt16LE(18) !== MACHINE_X86_64) return 'it is not for x86-64'
  if (head.readUInt16LE(16) !== TYPE_EXECUTABLE) return 'it is no executable'
  return undefined
}

/** The bytes of a section by name; `undefined` when the file has none or is no 64-bit ELF file. */
export function elfSection (file: Buffer, name: string): Buffer | undefined {
  if (file.length < HEADER_BYTES || !isElf(file) || file[4] !== CLASS_64) return undefined
  const sections = Number(file.readBigUInt64LE(40))
  const count = file.readUInt16LE(60)
  const header = (index: number) => {
    const at = sections + index * SECTION_HEADER_BYTES
    const offset = Number(file.readBigUInt64LE(at + 24))
    return { nameAt: file.readUInt32LE(at), content: file.subarray(offset, offset + Number(file.readBigUInt64LE(at + 32))) }
  }
  const names = header(file.readUInt16LE(62)).content
  for (let index = 0; index < count; index++) {
    const { nameAt, content } = header(index)
    if (names.toString('latin1', nameAt, names.indexOf(0, nameAt)) === name) return content
  }
  return undefined
}
