// The disks that writes to volumes with an overlay go to. Each is in a folder of the instance, so that they are copied, moved and removed with its own disk.
import { chmod, mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { HostCommands } from '../../../core/contracts/services.ts'
import { hasCode } from '../../../core/errors/system-code.ts'
import { syncFile, syncFolder } from '../../../core/fs/durable.ts'
import { copySparse } from '../../../core/fs/sparse-copy.ts'

export function overlayPath (folder: string, volumeId: string): string {
  return join(folder, `${volumeId}.ext4`)
}

/** Copies the overlays of an instance, or of a copy of one, when there are any. */
export async function copyVolumeOverlays (commands: HostCommands, from: string, to: string): Promise<void> {
  const names = await overlaysIn(from)
  if (names.length === 0) return
  await makeOverlaysFolder(to)
  for (const name of names) await copySparse(commands, join(from, name), join(to, name))
}

export async function syncVolumeOverlays (folder: string): Promise<void> {
  const names = await overlaysIn(folder)
  for (const name of names) await syncFile(join(folder, name))
  if (names.length > 0) await syncFolder(folder)
}

/** Names of the overlays; none when there is no such folder. */
export async function overlaysIn (folder: string): Promise<string[]> {
  try {
    return await readdir(folder)
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

/** Others may pass through it but not list it. */
export async function makeOverlaysFolder (path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o711 })
  await chmod(path, 0o711)
}
