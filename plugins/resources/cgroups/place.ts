// Finds where this host lets the server make control groups: by what the kernel says, never by assumption.
import { constants } from 'node:fs'
import { access, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { hasCode } from '../../../core/errors/system-code.ts'
import { isThere } from '../../../core/fs/is-there.ts'
import { readIfThere } from '../../../core/fs/read-if-there.ts'
import { groupFolder, hierarchiesIn, type Hierarchy } from '../../../core/process/control-groups.ts'

export type Controller = 'cpu' | 'memory' | 'pids'
const CONTROLLERS = ['cpu', 'memory', 'pids'] as const satisfies readonly Controller[]

/** A group in which groups can be made. */
export interface Place {
  readonly version: 1 | 2
  /** the controllers that can limit something there, each with its folder; with version 2 it is the same folder for all */
  readonly folders: Readonly<Partial<Record<Controller, string>>>
  /** only with version 1: the folder where the used processor time is counted, if that is a separate one */
  readonly accounting?: string
  /** why some controllers are missing */
  readonly reason?: string
}

export interface NoPlace { readonly reason: string }

/** What the kernel says about control groups; tests replace it. */
export interface KernelFiles {
  readonly mountinfo: string
  readonly cgroup: string
  readonly pid: number
  /** name of the process that started the server; empty when the server cannot see it, as the first process of a container */
  readonly parentName: string
  /** parent of a process; undefined when it has ended */
  parentOf (pid: number): Promise<number | undefined>
  /** Puts a process in a group. Does nothing for one that has ended. */
  move (group: string, pid: number): Promise<void>
}

export async function kernelFiles (): Promise<KernelFiles> {
  const [mountinfo, cgroup, parentName] = await Promise.all([readFile('/proc/self/mountinfo', 'utf8'), readFile('/proc/self/cgroup', 'utf8'), readIfThere(`/proc/${process.ppid}/comm`)])
  return { mountinfo, cgroup, pid: process.pid, parentName: parentName?.trim() ?? '', parentOf, move }
}

async function parentOf (pid: number): Promise<number | undefined> {
  try {
    return Number(/^PPid:\s+(\d+)$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1])
  } catch (error) {
    if (hasCode(error, 'ENOENT', 'ESRCH')) return undefined
    throw error
  }
}

async function move (group: string, pid: number): Promise<void> {
  try {
    await writeFile(join(group, 'cgroup.procs'), String(pid))
  } catch (error) {
    if (!hasCode(error, 'ESRCH')) throw error
  }
}

/**
 * The group in which the groups of VMs can be made: the configured one, which is made if it is missing, else the server's own if that was delegated to it. The kernel
 * allows processes in leaves only. So the server, with the processes that it has started, moves to a group of its own beside those of the VMs; no other process is moved.
 */
export async function findPlace (parent: string | undefined, kernel: KernelFiles): Promise<Place | NoPlace> {
  try {
    const hierarchies = hierarchiesIn(kernel.mountinfo)
    const unified = hierarchies.find(({ version }) => version === 2)
    const offered = unified === undefined ? [] : await words(join(unified.mount, 'cgroup.controllers'))
    if (unified !== undefined && CONTROLLERS.some((name) => offered.includes(name))) return await inUnified(unified, parent, kernel)
    const old = hierarchies.filter(({ version, controllers }) => version === 1 && CONTROLLERS.some((name) => controllers.includes(name)))
    if (old.length === 0) return { reason: 'this host has no control groups' }
    if (parent === undefined) return { reason: 'this host has control groups of version 1, of which none is delegated to a server; name one in plugins.resources.config.cgroups.parent' }
    return await inOld(hierarchies, parent)
  } catch (error) {
    if (hasCode(error, 'EACCES', 'EPERM', 'EROFS')) return { reason: `the server may not make control groups here: ${error instanceof Error ? error.message : String(error)}` }
    return { reason: `control groups cannot be used: ${error instanceof Error ? error.message : String(error)}` }
  }
}

async function inUnified (hierarchy: Hierarchy, parent: string | undefined, kernel: KernelFiles): Promise<Place | NoPlace> {
  const folder = parent === undefined ? groupFolder(hierarchy, kernel.cgroup) : join(hierarchy.mount, parent)
  if (folder === undefined) return { reason: 'the server\'s own control group is not visible to it; name another one in plugins.resources.config.cgroups.parent' }
  if (parent !== undefined) await makeGroups(hierarchy.mount, parent)
  await access(join(folder, 'cgroup.subtree_control'), constants.W_OK)
  await access(join(folder, 'cgroup.procs'), constants.W_OK)
  const available = await words(join(folder, 'cgroup.controllers'))
  const wanted = CONTROLLERS.filter((name) => available.includes(name))
  if (wanted.length === 0) return { reason: `the control group ${folder} has none of the controllers ${CONTROLLERS.join(', ')}` }
  // Only the root of a hierarchy may have processes beside its groups, and only the root has no type: the top of a container's namespace looks like it otherwise.
  const isRoot = !await isThere(join(folder, 'cgroup.type'))
  if (!isRoot && !await emptied(folder, kernel)) return { reason: `the control group ${folder} was not delegated to the server: other processes are in it` }
  await enable(folder, wanted)
  const missing = CONTROLLERS.filter((name) => !wanted.includes(name))
  return {
    version: 2,
    folders: Object.fromEntries(wanted.map((name) => [name, folder])),
    ...missing.length === 0 ? {} : { reason: `the control group ${folder} lacks the controllers ${missing.join(', ')}` }
  }
}

/** Moves the server's own processes from a group to a leaf below it. False, and nothing is moved, when other processes are in the group. */
async function emptied (folder: string, kernel: KernelFiles): Promise<boolean> {
  // In the group of a systemd service all processes belong to the service, also those that an earlier server has left.
  const isService = basename(folder).endsWith('.service') && kernel.parentName === 'systemd'
  for (let attempt = 0; attempt < EMPTY_ATTEMPTS; attempt++) {
    const inside = (await words(join(folder, 'cgroup.procs'))).map(Number)
    if (inside.length === 0) return true
    for (const pid of inside) if (!isService && !await descends(pid, kernel)) return false
    const leaf = join(folder, 'server')
    await makeGroup(leaf)
    for (const pid of inside) await kernel.move(leaf, pid)
  }
  return false
}

/** Several attempts, since a process may start another one while it is being moved. */
const EMPTY_ATTEMPTS = 10

async function descends (pid: number, { pid: server, parentOf }: KernelFiles): Promise<boolean> {
  // A process of another namespace, which has no number here.
  if (pid === 0) return false
  for (let at: number | undefined = pid; at !== undefined && at > 0; at = await parentOf(at)) if (at === server) return true
  return await parentOf(pid) === undefined
}

async function makeGroups (mount: string, path: string): Promise<string> {
  let folder = mount
  for (const name of path.split('/').filter((part) => part !== '')) {
    folder = join(folder, name)
    await makeGroup(folder)
  }
  return folder
}

/** Makes one group unless it exists. Not with all groups above it: where the kernel's file system refuses that, Node would try again for ever. */
export async function makeGroup (folder: string): Promise<void> {
  try {
    await mkdir(folder)
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error
  }
}

/** Lets the groups in a folder use controllers, which is needed with version 2 only. */
export async function enable (folder: string, controllers: readonly string[]): Promise<void> {
  await writeFile(join(folder, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' '))
}

async function inOld (hierarchies: readonly Hierarchy[], parent: string): Promise<Place | NoPlace> {
  const folderOf = async (controller: string): Promise<string | undefined> => {
    const hierarchy = hierarchies.find(({ version, controllers }) => version === 1 && controllers.includes(controller))
    if (hierarchy === undefined) return undefined
    return await makeGroups(hierarchy.mount, parent)
  }
  const found = await Promise.all(CONTROLLERS.map(async (name) => [name, await folderOf(name)] as const))
  const folders = Object.fromEntries(found.flatMap(([name, folder]) => folder === undefined ? [] : [[name, folder]]))
  const missing = found.filter(([, folder]) => folder === undefined).map(([name]) => name)
  const accounting = await folderOf('cpuacct')
  return {
    version: 1,
    folders,
    ...accounting === undefined || Object.values(folders).includes(accounting) ? {} : { accounting },
    ...missing.length === 0 ? {} : { reason: `this host lacks the controllers ${missing.join(', ')}` }
  }
}

async function words (file: string): Promise<string[]> {
  return (await readFile(file, 'utf8')).split(/\s+/).filter((word) => word !== '')
}
