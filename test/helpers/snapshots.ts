// Waits for what happens to a memory image in the background.
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { lines } from './machine.ts'
import type { TestServer } from './server.ts'

/** Waits until the memory image of an instance in standby is compressed, which only its operations log tells. */
export async function compressed (server: TestServer, id: string, algorithm: string): Promise<void> {
  const deadline = Date.now() + 60_000
  const raw = join(server.dataDir, 'instances', id, 'memory')
  while (await exists(raw)) {
    if (Date.now() > deadline) throw new Error(`the image was not compressed with ${algorithm}: ${(await lines(server, id, { source: 'hypeman' })).join('\n')}`)
    await new Promise(resolve => setTimeout(resolve, 50))
  }
}

async function exists (path: string): Promise<boolean> {
  return await access(path).then(() => true, () => false)
}
