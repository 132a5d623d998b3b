// The file into which a VMM has written the state of its devices. A guest may control the VMM, so the file is limited, and may change while it is read.
import type { FileHandle } from 'node:fs/promises'
import { CaptureFailed } from './errors.ts'

/** Some hundred kB, and more with many processors. */
export const MOST_STATE_BYTES = 64 * 2 ** 20

/** Reads all of it, and no more than it had at the beginning. @param file an open one, whose kind was checked */
export async function readState (file: FileHandle): Promise<Buffer> {
  const { size } = await file.stat()
  if (size > MOST_STATE_BYTES) throw CaptureFailed(`the VMM has written more than ${MOST_STATE_BYTES} bytes of state`)
  const content = Buffer.alloc(size)
  const { bytesRead } = await file.read(content, 0, size, 0)
  if (bytesRead !== size) throw CaptureFailed('the state of the devices became shorter while it was read')
  return content
}
