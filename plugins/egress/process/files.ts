// Makes the folders and files that a managed proxy starts with, so that only their readers can read them and nobody else can change them.
import { chmod, chown, lchown, lstat, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileDurably } from '../../../core/fs/durable.ts'
import type { EgressPaths } from './paths.ts'
import type { Plan } from './plan.ts'
import type { ProxyUser } from './user.ts'

export async function prepareFiles (paths: EgressPaths, { user, config, roots }: Plan): Promise<void> {
  await mkdir(paths.folder, { recursive: true })
  // The proxy must pass through to its own folder; the other files belong to the server.
  await chmod(paths.folder, 0o711)
  await mkdir(paths.proxyFolder, { recursive: true, mode: 0o700 })
  const { uid } = await lstat(paths.proxyFolder)
  if (uid !== user.uid) await handOver(paths.proxyFolder, user)
  // These files contain no secret.
  await writeFileDurably(paths.roots, roots, 0o644)
  await writeFileDurably(paths.config, `${JSON.stringify(config, null, 2)}\n`, 0o644)
}

/** Gives the folder and its content to another user than before. Links are not followed; the folder itself comes last, so that after a kill the next start repeats this. */
async function handOver (path: string, user: ProxyUser): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const inner = join(path, entry.name)
    if (entry.isDirectory()) await handOver(inner, user)
    else await lchown(inner, user.uid, user.gid)
  }
  await chown(path, user.uid, user.gid)
}
