// A program of this machine with the libraries that it needs, as files of an image.
import { readFile } from 'node:fs/promises'
import { createHostCommands } from '../../core/process/run.ts'
import type { TarEntry } from './tar.ts'

/** @param path of a dynamically linked program; it is at the same place in the image */
export async function installedProgram (path: string): Promise<TarEntry[]> {
  const { stdout } = await createHostCommands().run('ldd', [path])
  // `name => /path (address)`, and the loader as `/path (address)`
  const libraries = stdout.split('\n').flatMap(line => /(\/\S+) \(0x/.exec(line)?.[1] ?? [])
  return await Promise.all([path, ...libraries].map(async (file): Promise<TarEntry> => ({ path: file.slice(1), content: await readFile(file), mode: 0o755 })))
}
