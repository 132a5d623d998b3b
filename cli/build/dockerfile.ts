// Chooses the field of the API's form that a Dockerfile is sent in.
import { readFile } from 'node:fs/promises'
import { isAbsolute, relative } from 'node:path'
import { Failure } from '../failure.ts'

/** @param file absolute */
export async function dockerfileFields (folder: string, file: string): Promise<{ readonly dockerfile?: string, readonly dockerfile_path?: string }> {
  const inside = relative(folder, file)
  // A Dockerfile outside the folder is sent as its content.
  return inside.startsWith('..') || isAbsolute(inside) ? { dockerfile: await content(file) } : { dockerfile_path: inside }
}

async function content (file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}
