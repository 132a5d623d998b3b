// Loads a saved state into a QEMU that waits for one.
import { stat } from 'node:fs/promises'
import type { MemoryImage } from '../../core/library/hypervisor.ts'
import type { QmpClient } from './client.ts'
import { ImageDamaged, RestoreFailed } from '../../core/library/vmm/errors.ts'
import { prepareMigration, watchMigration } from './migration.ts'
import type { Vmm } from '../../core/library/vmm/start.ts'
import { FIRST_EXTRA } from '../../core/process/spawn.ts'

/** Before 8.2, memory mapped from a file that was opened for reading could not be written, not even privately. */
export function readonlyPrivate (vmmVersion: string): boolean {
  const [major = 0, minor = 0] = vmmVersion.split('.').map(Number)
  return major > 8 || (major === 8 && minor >= 2)
}

/** Throws `ImageDamaged` for a state file with another length than recorded. */
export async function checkState (image: MemoryImage, statePath: string): Promise<void> {
  const { size } = await stat(statePath)
  if (size !== image.stateBytes) throw ImageDamaged(`the state file ${statePath} has ${size} bytes of ${image.stateBytes}`)
}

/** number of the state file's descriptor in the process. The server's user opens it, so that the VMM's need not be able to. */
const STATE_FD = FIRST_EXTRA

/** Resolves once the VM, which was started with its state file open, has all of that state, and is paused. The caller ends the VMM when it rejects. */
export async function loadState (vmm: Vmm, qmp: QmpClient, timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
  await prepareMigration(qmp)
  const migration = watchMigration(qmp, timeoutMs, (why) => RestoreFailed(why))
  const over = new AbortController()
  try {
    await qmp.execute('migrate-incoming', { uri: `fd:${STATE_FD}` }, timeoutMs)
    await Promise.race([migration.done, aborted(signal, over.signal)])
  } catch (error) {
    // A QEMU that cannot take the state reports why, and ends: that is the better reason, and arrives a moment later.
    signal?.throwIfAborted()
    if (!await endsSoon(vmm)) throw error
    throw RestoreFailed(await vmm.lastWords())
  } finally {
    migration.stop()
    over.abort()
  }
}

const EXIT_GRACE_MS = 1000

async function endsSoon (vmm: Vmm): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>((resolve) => { timer = setTimeout(resolve, EXIT_GRACE_MS, false) })
  try {
    return await Promise.race([vmm.exited.then(() => true), late])
  } finally {
    clearTimeout(timer)
  }
}

function aborted (signal: AbortSignal | undefined, over: AbortSignal): Promise<never> {
  return new Promise((resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true, signal: over })
  })
}
