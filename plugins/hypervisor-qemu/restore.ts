// Loads a saved state into a QEMU that waits for one.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import type { MemoryImage } from '../../core/library/hypervisor.ts'
import { hasCode } from '../../core/errors/system-code.ts'
import type { QmpClient } from './client.ts'
import { ImageDamaged, RestoreFailed } from '../../core/library/vmm/errors.ts'
import { prepareMigration, watchMigration } from './migration.ts'
import { STREAM_FD, type Vmm } from '../../core/library/vmm/start.ts'

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

/** Resolves once the VM has all of its state, and is paused. The caller ends the VMM when it rejects. */
export async function loadState (vmm: Vmm, qmp: QmpClient, statePath: string, timeoutMs: number, signal: AbortSignal | undefined): Promise<void> {
  if (vmm.stream === undefined) throw RestoreFailed('QEMU was started without a stream')
  await prepareMigration(qmp)
  const migration = watchMigration(qmp, timeoutMs, (why) => RestoreFailed(why))
  // The server reads the file, so that the VMM's user need not be able to.
  const feeding = new AbortController()
  const feed = pipeline(createReadStream(statePath), vmm.stream, { signal: feeding.signal })
  // A QEMU that refuses the first bytes closes the stream before it answers, and so before anybody waits for the feed.
  feed.catch(() => {})
  try {
    await qmp.execute('migrate-incoming', { uri: `fd:${STREAM_FD}` }, timeoutMs)
    await Promise.race([migration.done, failureOf(feed), aborted(signal, feeding.signal)])
  } catch (error) {
    // A QEMU that cannot take the state reports why, and ends: that is the better reason, and arrives a moment later.
    signal?.throwIfAborted()
    if (!await endsSoon(vmm)) throw hasCode(error, 'EPIPE', 'ECONNRESET') ? RestoreFailed.from(error, 'QEMU took no more of the state') : error
    throw RestoreFailed(await vmm.lastWords())
  } finally {
    migration.stop()
    feeding.abort()
    vmm.stream.destroy()
    await feed.catch(() => {})
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

/** Rejects when the feed fails; never resolves, since a complete feed does not mean that the migration succeeded. */
function failureOf (feed: Promise<void>): Promise<never> {
  return new Promise((resolve, reject) => { feed.catch(reject) })
}

function aborted (signal: AbortSignal | undefined, over: AbortSignal): Promise<never> {
  return new Promise((resolve, reject) => {
    signal?.addEventListener('abort', () => reject(signal.reason), { once: true, signal: over })
  })
}
