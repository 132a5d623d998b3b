// Unpacks one compressed file into another, for each compression that kernels and their modules come in.
import { createReadStream, createWriteStream } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { createGunzip } from 'node:zlib'
import type { HostCommands } from '../../../core/contracts/services.ts'

export type Compression = 'gzip' | 'lz4' | 'xz' | 'zstd'

const MAGICS: ReadonlyArray<{ readonly compression: Compression, readonly magic: Buffer }> = [
  { compression: 'gzip', magic: Buffer.from([0x1f, 0x8b]) },
  // the legacy frame, which the kernel's build uses
  { compression: 'lz4', magic: Buffer.from([0x02, 0x21, 0x4c, 0x18]) },
  { compression: 'xz', magic: Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00]) },
  { compression: 'zstd', magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]) }
]

export function compressionOf (head: Buffer): Compression | undefined {
  return MAGICS.find(({ magic }) => head.subarray(0, magic.length).equals(magic))?.compression
}

/** Writes what `from` holds to `to`. */
export async function decompress (commands: HostCommands, compression: Compression, from: string, to: string): Promise<void> {
  switch (compression) {
    case 'gzip': return await pipeline(createReadStream(from), createGunzip(), createWriteStream(to))
    case 'lz4': await commands.run('lz4', ['-d', '-f', '-q', from, to]); return
    case 'zstd': await commands.run('zstd', ['-d', '-f', '-q', from, '-o', to]); return
    case 'xz':
      // xz names its output after its input
      await copyFile(from, `${to}.xz`)
      await commands.run('xz', ['-d', '-f', '-q', `${to}.xz`])
  }
}
