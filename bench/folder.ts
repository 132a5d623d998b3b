// A private folder for one benchmark; afterwards everything in it is ended and removed.
import { chmod, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeServerFolder } from '../setup/server/process.ts'

/** Runs `work` in a new folder; processes that it leaves there are ended, after a failure and after Ctrl-C, too. */
export async function inFolder (work: (folder: string, signal: AbortSignal) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  await chmod(folder, 0o711)
  const interrupt = new AbortController()
  const stopped = new Promise<never>((_resolve, reject) => { interrupt.signal.addEventListener('abort', () => reject(new Error('interrupted'))) })
  stopped.catch(() => undefined)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort())
  try {
    await Promise.race([work(folder, interrupt.signal), stopped])
  } finally {
    await removeServerFolder(folder)
  }
}
