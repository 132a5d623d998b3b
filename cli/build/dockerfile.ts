// Chooses the field of the API's form that a Dockerfile is sent in.
import { readFile } from 'node:fs/promises'
import { isAbsolute, relative } from 'node:path'
import { reading } from '../local-file.ts'

/** @param file absolute */
export async function dockerfileFields (folder: string, file: string): Promise<{ readonly dockerfile?: string, readonly dockerfile_path?: string }> {
  const inside = relative(folder, file)
  // A Dockerfile outside the folder is sent as its content.
  return inside.startsWith('..') || isAbsolute(inside) ? { dockerfile: await reading(file, readFile(file, 'utf8')) } : { dockerfile_path: inside }
}
