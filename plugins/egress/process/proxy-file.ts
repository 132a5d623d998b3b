// Has the configuration of a proxy that systemd runs checked by the proxy's own program, which alone knows what it takes.
import { join } from 'node:path'
import type { ConfigReport } from '../../../core/plugins/manifest.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { createHostCommands, HostCommandFailed } from '../../../core/process/run.ts'
import { PROXY_FILE } from '../settings.ts'
import { PROGRAM } from './plan.ts'

const TIMEOUT_MS = 30_000

/** A proxy of other units has its file elsewhere, where nobody finds it. */
export async function checkProxyFile (folder: string): Promise<ConfigReport> {
  const file = join(folder, PROXY_FILE)
  if (!await isThere(file)) return { problems: [], files: [] }
  try {
    await createHostCommands().run(process.execPath, [PROGRAM, '--check-config', '--config', file], { timeoutMs: TIMEOUT_MS })
    return { problems: [], files: [file] }
  } catch (error) {
    if (!(error instanceof HostCommandFailed)) throw error
    return { problems: [`${file}: ${error.failure.stderr.trim()}`], files: [] }
  }
}
