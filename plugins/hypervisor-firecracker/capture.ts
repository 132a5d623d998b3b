// Pauses Firecracker's VM and writes a snapshot.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { copyWritten, type RestCapture } from '../../core/library/vmm/rest-capture.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { CAPTURED, IMAGE_VERSION } from './names.ts'

export function captureOf (folder: RunFolder, slow: (method: 'PUT' | 'PATCH', path: string, body: object) => Promise<void>): RestCapture {
  const state = join(folder.path, CAPTURED.state)
  const memory = join(folder.path, CAPTURED.memory)
  return {
    imageVersion: IMAGE_VERSION,
    set: (wanted) => slow('PATCH', '/vm', { state: wanted === 'paused' ? 'Paused' : 'Resumed' }),
    // Firecracker would write over existing files.
    clear: async () => { for (const path of [state, memory]) await rm(path, { force: true }) },
    write: () => slow('PUT', '/snapshot/create', { snapshot_type: 'Full', snapshot_path: CAPTURED.state, mem_file_path: CAPTURED.memory }),
    takeState: (to) => copyWritten(state, to),
    memory
  }
}
