// Control groups of VMs below the one that is the torture's own. The hierarchies are the host's: others have theirs beside it.
import { readdir, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { namesIn } from './files.ts'

const MOUNT = '/sys/fs/cgroup'

/** Each hierarchy with its path of this group; of version 2 there is one. */
async function homes (group: string): Promise<string[]> {
  const found: string[] = []
  for (const folder of [MOUNT, ...(await namesIn(MOUNT)).map((name) => join(MOUNT, name))]) {
    if ((await readdir(join(folder, group)).catch(() => undefined)) !== undefined) found.push(join(folder, group))
  }
  return found
}

async function groupsIn (folder: string): Promise<string[]> {
  return (await readdir(folder, { withFileTypes: true }).catch(() => [])).filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name))
}

/** Groups of VMs: for each hierarchy the names of those in the folders of servers. */
export async function groupsOfVms (group: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const found = new Map<string, readonly string[]>()
  for (const home of await homes(group)) {
    const groups = (await Promise.all((await groupsIn(home)).map(groupsIn))).flat()
    found.set(home, groups.map((path) => path.split('/').at(-1) ?? ''))
  }
  return found
}

/** Takes it away, once no process is in it. */
export async function removeGroups (group: string): Promise<void> {
  for (const home of await homes(group)) {
    for (const server of await groupsIn(home)) {
      for (const each of await groupsIn(server)) await rmdir(each).catch(() => undefined)
      await rmdir(server).catch(() => undefined)
    }
    await rmdir(home).catch(() => undefined)
  }
}
