// Puts a program of this host into the root of an image.
import { chmod, copyFile, mkdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { HostCommands } from '../../core/contracts/services.ts'
import { librariesOf } from '../libraries.ts'

/** With the libraries that it is linked with, which the root has where this host has them. @param as the program's path in the root */
export async function placeProgram (commands: HostCommands, program: string, root: string, as: string): Promise<void> {
  await place(program, join(root, as))
  for (const library of await librariesOf(commands, program)) await place(library, join(root, library))
}

async function place (file: string, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true })
  await copyFile(file, target)
  await chmod(target, 0o755)
}
