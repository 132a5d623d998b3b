// Getting the kernel out of a bzImage: each compression, and each way in which a file is no kernel.
import { execFileSync } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { createHostCommands } from '../../../../core/process/run.ts'
import { extractVmlinux } from '../../../../plugins/guest/system/vmlinux.ts'
import { testFolder } from '../../../helpers/folder.ts'

const commands = createHostCommands()

function kernel (machine = 62, type = 2): Buffer {
  const elf = Buffer.alloc(200_000)
  elf.write('\x7fELF', 0, 'latin1')
  elf[4] = 2
  elf[5] = 1
  elf.writeUInt16LE(type, 16)
  elf.writeUInt16LE(machine, 18)
  for (let index = 64; index < elf.length; index++) elf[index] = (index * index) % 251
  return elf
}

/** A bzImage around a payload, as arch/x86/boot lays it out: three setup sectors, then code, then the payload. */
function bzImage (payload: Buffer): Buffer {
  const head = Buffer.alloc(4 * 512 + 4096)
  head[0x1f1] = 3
  head.write('HdrS', 0x202, 'latin1')
  head.writeUInt16LE(0x020f, 0x206)
  head.writeUInt32LE(4096, 0x248)
  head.writeUInt32LE(payload.length, 0x24c)
  return Buffer.concat([head, payload, Buffer.alloc(1000, 0xcc)])
}

function size (length: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(length)
  return bytes
}

const withSize = (packed: Buffer, elf: Buffer) => Buffer.concat([packed, size(elf.length)])

t.test('each compression that a kernel comes in', async (t) => {
  const folder = testFolder(t)
  const elf = kernel()
  const payloads: Readonly<Record<string, Buffer>> = {
    none: elf,
    gzip: gzipSync(elf),
    lz4: withSize(execFileSync('lz4', ['-l', '-c', '-'], { input: elf }), elf),
    xz: withSize(execFileSync('xz', ['--check=crc32', '--x86', '--lzma2', '-c'], { input: elf }), elf),
    zstd: withSize(execFileSync('zstd', ['-q', '-c'], { input: elf }), elf)
  }
  for (const [name, payload] of Object.entries(payloads)) {
    const image = join(folder, name)
    await writeFile(image, bzImage(payload))
    await extractVmlinux(commands, image, `${image}.elf`)
    t.ok((await readFile(`${image}.elf`)).equals(elf), name)
  }
})

t.test('a vmlinux is taken as it is', async (t) => {
  const image = join(testFolder(t), 'vmlinux')
  await writeFile(image, kernel())
  await extractVmlinux(commands, image, `${image}.copy`)
  t.ok((await readFile(`${image}.copy`)).equals(kernel()))
})

t.test('what is no kernel is refused with the reason', async (t) => {
  const folder = testFolder(t)
  const old = bzImage(kernel())
  old.writeUInt16LE(0x0204, 0x206)
  const cases: ReadonlyArray<readonly [string, Buffer, RegExp]> = [
    ['an empty file', Buffer.alloc(0), /neither a bzImage nor an ELF/],
    ['a text', Buffer.alloc(10_000, 'x'), /neither a bzImage nor an ELF/],
    ['an old protocol', old, /too old/],
    ['cut off', bzImage(kernel()).subarray(0, 50_000), /cut off/],
    ['unknown compression', bzImage(Buffer.alloc(5000, 1)), /unknown way/],
    ['a wrong size', bzImage(Buffer.concat([execFileSync('zstd', ['-q', '-c'], { input: kernel() }), size(5)])), /not the size/],
    ['another processor', kernel(183), /not for x86-64/],
    ['a module', kernel(62, 1), /no executable/],
    ['an image without an ELF', bzImage(gzipSync(Buffer.alloc(5000, 1))), /no ELF/]
  ]
  for (const [name, bytes, why] of cases) {
    const image = join(folder, name.replaceAll(' ', '-'))
    await writeFile(image, bytes)
    await t.rejects(extractVmlinux(commands, image, `${image}.elf`), { code: 'kernel_invalid', message: why }, name)
  }
})
