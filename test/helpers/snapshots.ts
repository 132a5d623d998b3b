// Waits for what happens to a memory image in the background.
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { lines } from './machine.ts'
import type { TestServer } from './server.ts'
import { eventually } from './eventually.ts'

/** Waits until the memory image of an instance in standby is compressed, which only its operations log tells. */
export async function compressed (server: TestServer, id: string, algorithm: string): Promise<void> {
  const raw = join(server.dataDir, 'instances', id, 'memory')
  await eventually(`the image is compressed with ${algorithm}`, async () => !await exists(raw), { explain: async () => (await lines(server, id, { source: 'hypeman' })).join('\n') })
}

async function exists (path: string): Promise<boolean> {
  return await access(path).then(() => true, () => false)
}
