// Makes the folders and files that a managed proxy starts with, each as the one who needs it can read it and nobody else can change it.
import { chmod, chown, lchown, lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileDurably } from '../../../core/fs/durable.ts'
import type { EgressPaths } from './paths.ts'
import type { Plan } from './plan.ts'
import type { ProxyUser } from './user.ts'

export async function prepareFiles (paths: EgressPaths, { user, config, roots }: Plan): Promise<void> {
  await mkdir(paths.folder, { recursive: true })
  // Passed through to the proxy's own folder; what is in it is the server's.
  await chmod(paths.folder, 0o711)
  await mkdir(paths.proxyFolder, { recursive: true, mode: 0o700 })
  const { uid } = await lstat(paths.proxyFolder)
  if (uid !== user.uid) await handOver(paths.proxyFolder, user)
  // Nothing in them is secret.
  await writeFileDurably(paths.roots, roots, 0o644)
  await writeFileDurably(paths.config, `${JSON.stringify(config, null, 2)}\n`, 0o644)
}

/** All of it, for another user than before. Links are not followed; the folder itself comes last, so that a kill leaves this to the next start. */
async function handOver (path: string, user: ProxyUser): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const inner = join(path, entry.name)
    if (entry.isDirectory()) await handOver(inner, user)
    else await lchown(inner, user.uid, user.gid)
  }
  await chown(path, user.uid, user.gid)
}
