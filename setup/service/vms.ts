// VMs that run on the data of an installation. Each works in the folder of its instance: its control group is a setting, and so is the program that it is.
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { isThere } from '../../core/fs/is-there.ts'
import { hasTerminal, processesBelow } from '../../core/process/find.ts'
import { SERVER_DATA } from './places.ts'

/** in a data folder, which may be one in the installation's */
const INSTANCES = '/instances/'

export interface Named { readonly pid: number, readonly name: string }

/** @param root folder that stands for `/` */
export async function vmsOf (root: string): Promise<Named[]> {
  if (!await isThere(join(root, SERVER_DATA))) return []
  const data = await realpath(join(root, SERVER_DATA))
  const found = await Promise.all((await processesBelow(data)).map(async ({ pid, inside }): Promise<Named[]> => {
    // An operator's shell in there has a terminal.
    if (!`/${inside}`.includes(INSTANCES) || await hasTerminal(pid)) return []
    return [{ pid, name: await readFile(`/proc/${pid}/comm`, 'utf8').then((text) => text.trim(), () => 'ended') }]
  }))
  return found.flat()
}
