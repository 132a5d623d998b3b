// Looks for a text in everything that a server has on disk, also in what is packed.
import { open, readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { createHostCommands, HostCommandFailed } from '../../../core/process/run.ts'
import type { TestServer } from '../../helpers/server.ts'

const commands = createHostCommands()
const GZIP = '1f8b'

/** Files below the server's folder that have the text, as raw bytes or in a packed layer of the registry. */
export async function placesOf ({ folder, dataDir }: TestServer, text: string): Promise<string[]> {
  const plain = await grep(folder, text)
  const packed: string[] = []
  for (const path of await filesIn(join(dataDir, 'registry'))) {
    if (await startOf(path) === GZIP && gunzipSync(await readFile(path)).includes(text)) packed.push(path)
  }
  return [...plain, ...packed].map((path) => relative(folder, path)).sort()
}

/** The disks of volumes that the server has. */
export async function diskFiles ({ dataDir }: TestServer): Promise<string[]> {
  return await readdir(join(dataDir, 'volumes/disks'))
}

async function grep (folder: string, text: string): Promise<string[]> {
  try {
    // It passes over the holes of disks, unless it is told to take all for text.
    const { stdout } = await commands.run('grep', ['--recursive', '--files-with-matches', '--fixed-strings', '--devices=skip', '-e', text, folder], { env: { LC_ALL: 'C' } })
    return stdout.trim().split('\n')
  } catch (error) {
    // how it says that it has found nothing
    if (error instanceof HostCommandFailed && error.failure.exitCode === 1) return []
    throw error
  }
}

async function filesIn (folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}

async function startOf (path: string): Promise<string> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(2), 0, 2, 0)
    return buffer.subarray(0, bytesRead).toString('hex')
  } finally {
    await file.close()
  }
}
