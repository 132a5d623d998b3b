// Refuses a data folder that VMs cannot reach: each VM runs as a user of its own, and every folder on the way must let that user pass.
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'

const OTHERS_MAY_PASS = 0o001

/** @throws naming the folder in the way */
export async function requireReachable (dataDir: string): Promise<void> {
  for (let folder = dataDir; ; folder = dirname(folder)) {
    const { mode } = await stat(folder)
    if ((mode & OTHERS_MAY_PASS) === 0) {
      throw new Error(`server.dataDir: VMs run as users of their own and cannot reach ${dataDir}, because ${folder} has mode ${(mode & 0o7777).toString(8)}; choose another folder, or chmod o+x ${folder}`)
    }
    if (folder === dirname(folder)) return
  }
}
