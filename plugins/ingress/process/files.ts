// Makes nginx's working folder: nginx's user owns what nginx writes, the server owns the rest.
import { chmod, chown, mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { writeFileDurably } from '../../../core/fs/durable.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { configName, type Plan } from './plan.ts'
import type { IngressPaths } from './paths.ts'

export async function prepareFolders (paths: IngressPaths, uid: number): Promise<void> {
  for (const folder of [paths.keys, paths.acme]) await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const folder of [paths.folder, paths.certificates, paths.challenges, paths.empty]) {
    await mkdir(folder, { recursive: true })
    await chmod(folder, folder === paths.challenges ? 0o755 : 0o711)
  }
  for (const folder of [join(paths.challenges, '.well-known'), paths.tokens]) {
    await mkdir(folder, { recursive: true })
    await chmod(folder, 0o755)
  }
  await chmod(join(paths.folder, '..'), 0o711)
  for (const folder of [paths.requests, paths.kept, paths.run, paths.temporary]) {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    // It belongs to another user than before, so its content is removed.
    if ((await stat(folder)).uid === uid) continue
    await rm(folder, { recursive: true })
    await mkdir(folder, { mode: 0o700 })
    await chown(folder, uid, uid)
  }
  // The data folder has moved, or was restored from a backup: certificates stay valid.
  for (const name of await readdir(paths.certificates)) {
    const path = join(paths.certificates, name)
    if ((await stat(path)).uid !== uid) await chown(path, uid, uid)
  }
  if (!await isThere(paths.openHosts)) await writeFileDurably(paths.openHosts, '')
}

export async function writeConfig (paths: IngressPaths, { text, fingerprint }: Plan): Promise<void> {
  const name = configName(fingerprint)
  await writeFileDurably(join(paths.folder, name), text)
  for (const other of await readdir(paths.folder)) if (other.endsWith('.conf') && other !== name) await rm(join(paths.folder, other))
}
