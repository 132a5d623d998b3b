// Writes no faster than the reader reads.
import { once } from 'node:events'
import type { Writable } from 'node:stream'

export async function writeAll (stream: Writable, content: string | Buffer): Promise<void> {
  if (!stream.write(content)) await once(stream, 'drain')
}
