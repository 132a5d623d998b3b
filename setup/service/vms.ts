// VMs that run on the data of an installation. Each works in the folder of its instance: its control group is a setting, and so is the program that it is.
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { isThere } from '../../core/fs/is-there.ts'
import { folderOf, hasTerminal, processIds } from '../../core/process/find.ts'
import { SERVER_DATA } from './places.ts'

/** in a data folder, which may be one in the installation's */
const INSTANCES = '/instances/'

export interface Named { readonly pid: number, readonly name: string }

/** @param root folder that stands for `/` */
export async function vmsOf (root: string): Promise<Named[]> {
  if (!await isThere(join(root, SERVER_DATA))) return []
  const data = await realpath(join(root, SERVER_DATA))
  const found = await Promise.all((await processIds()).map(async (pid): Promise<Named[]> => {
    const folder = await folderOf(pid)
    // An operator's shell in there has a terminal.
    if (folder?.startsWith(`${data}/`) !== true || !folder.slice(data.length).includes(INSTANCES) || await hasTerminal(pid)) return []
    return [{ pid, name: await readFile(`/proc/${pid}/comm`, 'utf8').then((text) => text.trim(), () => 'ended') }]
  }))
  return found.flat()
}
