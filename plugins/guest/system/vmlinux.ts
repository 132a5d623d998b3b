// Extracts the uncompressed kernel from a bzImage, since a kernel that need not unpack itself starts much sooner, above all under emulation.
import { constants } from 'node:fs'
import { copyFile, open, rm, stat, writeFile } from 'node:fs/promises'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { KernelInvalid } from '../errors.ts'
import { compressionOf, decompress } from './decompress.ts'
import { isElf, kernelFault } from './elf.ts'

const HEAD_BYTES = 4096
const SECTOR_BYTES = 512
// Offsets in the header of the Linux x86 boot protocol; the two payload fields came with version 2.08.
const SETUP_SECTORS = 0x1f1
const SIGNATURE = 0x202
const PROTOCOL_VERSION = 0x206
const PAYLOAD_OFFSET = 0x248
const PAYLOAD_LENGTH = 0x24c
const FIRST_VERSION_WITH_PAYLOAD = 0x0208

interface Payload { readonly offset: number, readonly length: number }

function findPayload (path: string, head: Buffer): Payload {
  if (head.length < HEAD_BYTES || head.toString('latin1', SIGNATURE, SIGNATURE + 4) !== 'HdrS') throw KernelInvalid(path, 'it is neither a bzImage nor an ELF file')
  if (head.readUInt16LE(PROTOCOL_VERSION) < FIRST_VERSION_WITH_PAYLOAD) throw KernelInvalid(path, 'its boot protocol is too old')
  // 0 means 4, for kernels older than the field
  const setupSectors = head.readUInt8(SETUP_SECTORS) || 4
  return { offset: (setupSectors + 1) * SECTOR_BYTES + head.readUInt32LE(PAYLOAD_OFFSET), length: head.readUInt32LE(PAYLOAD_LENGTH) }
}

async function readPart (path: string, offset: number, length: number): Promise<Buffer> {
  const handle = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, offset)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

/** Writes the kernel in `image` (a bzImage or a vmlinux) to `target` as a vmlinux. Half-done files may stay beside it when it fails. */
export async function extractVmlinux (commands: HostCommands, image: string, target: string): Promise<void> {
  const head = await readPart(image, 0, HEAD_BYTES)
  if (isElf(head)) {
    await copyFile(image, target, constants.COPYFILE_FICLONE)
  } else {
    await unpackPayload(commands, image, findPayload(image, head), target)
  }
  const fault = kernelFault(await readPart(target, 0, HEAD_BYTES))
  if (fault !== undefined) throw KernelInvalid(image, fault)
}

async function unpackPayload (commands: HostCommands, image: string, place: Payload, target: string): Promise<void> {
  const { size } = await stat(image)
  if (place.length < 8 || place.offset + place.length > size) throw KernelInvalid(image, 'it is cut off')
  const payload = await readPart(image, place.offset, place.length)
  if (isElf(payload)) return await writeFile(target, payload)
  const compression = compressionOf(payload)
  if (compression === undefined) throw KernelInvalid(image, 'it is compressed in an unknown way')
  // The build appends the unpacked size; gzip already ends with such a field.
  const end = compression === 'gzip' ? payload.length : payload.length - 4
  const packed = `${target}.payload`
  await writeFile(packed, payload.subarray(0, end))
  await decompress(commands, compression, packed, target)
  await rm(packed)
  const unpacked = await stat(target)
  if (unpacked.size !== payload.readUInt32LE(payload.length - 4)) throw KernelInvalid(image, 'its content has not the size that it states')
}
