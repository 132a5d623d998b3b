// Ends the managed proxies of a data folder, whichever server has started them.
import { stat } from 'node:fs/promises'
import { hasCode } from '../../../core/errors/system-code.ts'
import { endGently } from '../../../core/process/end.ts'
import { findProxies } from './find.ts'
import type { EgressPaths } from './paths.ts'

/** How long a proxy has to finish what is under way, where the server waits for it. */
export const STOP_MS = 4_000

/** @param uid the proxies' */
export async function endAll ({ folder }: EgressPaths, uid: number): Promise<void> {
  // Wherever it lives: the namespace may be gone.
  const found = await findProxies(folder, undefined, uid)
  await Promise.all(found.map(async ({ identity }) => { await endGently(identity, { withinMs: STOP_MS }) }))
}

/** For a server without settings of a proxy: its user is the owner of its folder, which was made before it. */
export async function endAllOfOwner (paths: EgressPaths): Promise<void> {
  try {
    await endAll(paths, (await stat(paths.proxyFolder)).uid)
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error
  }
}
