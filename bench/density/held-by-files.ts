// What the files of machines take of the disk and of the page cache; a file that several of them have is counted once.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'

export interface HeldByFiles { readonly diskMib: number, readonly cachedMib: number }

const MIB = 2 ** 20

export async function heldByFiles (commands: HostCommands, folders: readonly string[]): Promise<HeldByFiles> {
  const files = new Map<number, { readonly path: string, readonly bytes: number }>()
  for (const folder of folders) {
    for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const path = join(entry.parentPath, entry.name)
      const { ino, blocks } = await stat(path)
      files.set(ino, { path, bytes: blocks * 512 })
    }
  }
  const all = [...files.values()]
  const { stdout } = await commands.run('fincore', ['--bytes', '--raw', '--noheadings', '--output', 'RES', '--', ...all.map(({ path }) => path)])
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)
  return { diskMib: sum(all.map(({ bytes }) => bytes)) / MIB, cachedMib: sum(stdout.trim().split('\n').map(Number)) / MIB }
}
