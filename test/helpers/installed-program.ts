// A program of this machine with the libraries that it needs, as files of an image.
import { readFile } from 'node:fs/promises'
import { createHostCommands } from '../../core/process/run.ts'
import { librariesOf } from '../../setup/libraries.ts'
import type { TarEntry } from './tar.ts'

/** @param path of the program; it is at the same place in the image */
export async function installedProgram (path: string): Promise<TarEntry[]> {
  return await Promise.all([path, ...await librariesOf(createHostCommands(), path)].map(async (file): Promise<TarEntry> => ({ path: file.slice(1), content: await readFile(file), mode: 0o755 })))
}
