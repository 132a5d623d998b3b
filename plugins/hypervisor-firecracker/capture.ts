// Pauses Firecracker's VM and writes a snapshot.
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { VmmRefused } from '../../core/library/vmm/errors.ts'
import { copyWritten, type RestCapture } from '../../core/library/vmm/rest-capture.ts'
import type { RunFolder } from '../../core/library/vmm/run-folder.ts'
import { CAPTURED, IMAGE_VERSION, NOWHERE } from './names.ts'

type Slow = (method: 'PUT' | 'PATCH', path: string, body: object) => Promise<void>

export function captureOf (folder: RunFolder, slow: Slow): RestCapture {
  const state = join(folder.room, CAPTURED.state)
  const memory = join(folder.room, CAPTURED.memory)
  /** whether the guest was told, since it was paused last, that its connections are gone */
  let isReset = false
  return {
    imageVersion: IMAGE_VERSION,
    async set (wanted) {
      if (wanted === 'running' && !isReset) await resetConnections(slow)
      isReset = false
      await slow('PATCH', '/vm', { state: wanted === 'paused' ? 'Paused' : 'Resumed' })
    },
    // Firecracker would write over existing files.
    clear: async () => { for (const path of [state, memory]) await rm(path, { force: true }) },
    async write () {
      await slow('PUT', '/snapshot/create', snapshotIn(CAPTURED.state, CAPTURED.memory))
      isReset = true
    },
    takeState: (to) => copyWritten(state, to),
    memory
  }
}

/**
 * Up to 1.16.1 a guest that was paused and goes on without a snapshot in between is never again reached over vsock: Firecracker waits for it to acknowledge a reset of its connections,
 * of which only a snapshot tells it. It is the first thing that a snapshot does, so that one which fails, as it has no place for its files, does it in no time.
 */
async function resetConnections (slow: Slow): Promise<void> {
  await slow('PUT', '/snapshot/create', snapshotIn(`${NOWHERE}/state`, `${NOWHERE}/memory`)).catch((error: unknown) => { if (!VmmRefused.is(error)) throw error })
}

function snapshotIn (state: string, memory: string): object {
  return { snapshot_type: 'Full', snapshot_path: state, mem_file_path: memory }
}
