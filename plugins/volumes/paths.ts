// Where the files of volumes stand. Names only; files.ts makes and removes them.
import { join } from 'node:path'

export interface VolumePaths {
  /** the folder of all of this; others may pass through it but not list it */
  readonly folder: string
  /** the folder of the disks, for the server alone */
  readonly disks: string
  /** the folder of the second names of disks, each in a folder that only the instance's VM and the server can enter */
  readonly uses: string
  /** the folder of archives that are being unpacked, for the server alone */
  readonly unpacking: string
}

export function volumePaths (dataDir: string): VolumePaths {
  const folder = join(dataDir, 'volumes')
  return { folder, disks: join(folder, 'disks'), uses: join(folder, 'uses'), unpacking: join(folder, 'unpacking') }
}

export const DISK_SUFFIX = '.img'
export const MAKING_SUFFIX = '.making'
